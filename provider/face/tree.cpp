// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/tree.hpp"

#include <algorithm>
#include <cassert>

namespace dapple::face {
namespace {

unsigned rank_of(char character) {
  return character == '/' ? 0 : static_cast<unsigned char>(character);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

const Node* find_in(const std::vector<Node>& nodes, std::string_view path) {
  const auto found = std::lower_bound(nodes.begin(), nodes.end(), path, [](const Node& node, std::string_view wanted) {
    return path_before(node.path, wanted);
  });
  return found != nodes.end() && found->path == path ? &*found : nullptr;
}

}  // namespace

bool path_before(std::string_view a, std::string_view b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](char left, char right) { return rank_of(left) < rank_of(right); });
}

bool is_inside(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

std::string way_up(std::string_view path) {
  std::string up;
  for (const char character : path) up += character == '/' ? "../" : "";
  return up;
}

const Node* find_through_links(const std::vector<Node>& nodes, std::string_view path) {
  std::string left(path), place;
  for (int links = 0; !left.empty();) {
    if (left.front() == '/') return nullptr;
    const Node* node = place.empty() ? nullptr : find_in(nodes, place);
    if (node == nullptr && !place.empty()) return nullptr;
    if (node != nullptr && node->kind == NodeKind::kLink) {
      // Its target counts from the folder that has the link.
      if (++links > kMaxLinks) return nullptr;
      left = node->text + '/' + left;
      place = folder_of(place);
      continue;
    }
    if (node != nullptr && node->kind != NodeKind::kFolder) return nullptr;
    const size_t end = std::min(left.find('/'), left.size());
    const std::string name = left.substr(0, end);
    left.erase(0, std::min(left.find_first_not_of('/', end), left.size()));
    assert(!name.empty());
    if (name == "..") {
      if (place.empty()) return nullptr;
      place = folder_of(place);
    } else if (name != ".") {
      place += (place.empty() ? "" : "/") + name;
    }
  }
  return find_in(nodes, place);
}

void Tree::add(std::string_view path, NodeKind kind, std::string_view text) {
  assert(!path.empty() && path.front() != '/' && path.back() != '/');
  const size_t slash = path.rfind('/');
  if (slash != std::string_view::npos && path.substr(0, slash) != last_folder_) {
    const std::string_view folder = path.substr(0, slash);
    for (size_t end = folder.find('/'); end != std::string_view::npos; end = folder.find('/', end + 1)) {
      nodes_.push_back({std::string(folder.substr(0, end)), NodeKind::kFolder, {}});
    }
    nodes_.push_back({std::string(folder), NodeKind::kFolder, {}});
    last_folder_ = folder;
  }
  nodes_.push_back({std::string(path), kind, std::string(text)});
  sorted_ = false;
}

void Tree::sort() {
  if (sorted_) return;
  // The last of equal paths stays.
  std::stable_sort(nodes_.begin(), nodes_.end(),
                   [](const Node& a, const Node& b) { return path_before(a.path, b.path); });
  size_t kept = 0;
  for (size_t i = 0; i < nodes_.size(); i++) {
    if (i + 1 < nodes_.size() && nodes_[i].path == nodes_[i + 1].path) continue;
    if (kept != i) nodes_[kept] = std::move(nodes_[i]);
    kept++;
  }
  nodes_.resize(kept);
  sorted_ = true;
  assert_consistent();
}

void Tree::assert_consistent() const {
  for (size_t i = 1; i < nodes_.size(); i++) {
    assert(path_before(nodes_[i - 1].path, nodes_[i].path));
    // Only a folder has contents.
    assert(!is_inside(nodes_[i].path, nodes_[i - 1].path) || nodes_[i - 1].kind == NodeKind::kFolder);
  }
}

const std::vector<Node>& Tree::nodes() {
  sort();
  return nodes_;
}

const Node* Tree::find(std::string_view path) {
  sort();
  return find_in(nodes_, path);
}

}  // namespace dapple::face
