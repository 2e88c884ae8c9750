// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/writer.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>

#include "provider/system/owned_fd.hpp"

namespace dapple::face {
namespace {

// `change` is the number of the change of this entry.
std::string staged(const Node& node, size_t change) {
  std::string name = node.path;
  std::replace(name.begin(), name.end(), '/', soft::kStagedSlash);
  if (name.size() > NAME_MAX) name = std::to_string(change);
  return std::string(kStage) + '/' + name;
}

int write_file(int folder, const char* path, const std::string& text) {
  soft::OwnedFd file(openat(folder, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
  if (!file) return errno;
  for (size_t written = 0; written < text.size();) {
    const ssize_t size = write(file.get(), text.data() + written, text.size() - written);
    if (size < 0 && errno != EINTR) return errno;
    if (size > 0) written += static_cast<size_t>(size);
  }
  // A network's file system may report here that the disk is full.
  return close(file.release()) == 0 ? 0 : errno;
}

// Since Linux 5.8 everybody may make a device with the number 0. It leads nowhere, but lists of the folder show its
// kind.
int make_device(int folder, const char* path) {
  if (mknodat(folder, path, S_IFCHR | 0666, makedev(0, 0)) != 0) {
    return symlinkat("/dev/null", folder, path) == 0 ? 0 : errno;
  }
  return fchmodat(folder, path, 0666, 0) == 0 ? 0 : errno;
}

int make(int folder, const char* path, const Node& node) {
  switch (node.kind) {
    case NodeKind::kFolder:
      return mkdirat(folder, path, 0755) == 0 ? 0 : errno;
    case NodeKind::kLink:
      return symlinkat(node.text.c_str(), folder, path) == 0 ? 0 : errno;
    case NodeKind::kFile:
    case NodeKind::kEmpty:
      return write_file(folder, path, node.text);
    case NodeKind::kDevice:
      return make_device(folder, path);
  }
  return EINVAL;
}

bool is_folder(const Node& node) {
  return node.kind == NodeKind::kFolder;
}

// The number of nodes from `first` that are the node there and its contents.
size_t whole_count(const std::vector<Node>& nodes, size_t first) {
  size_t end = first + 1;
  while (end < nodes.size() && is_inside(nodes[end].path, nodes[first].path)) end++;
  return end - first;
}

}  // namespace

void Writer::enter(State state) {
  // Only clear() mends a folder.
  assert(state_ == State::kWhole || state == State::kWhole);
  state_ = state;
}

void Writer::assert_consistent() const {
  for (size_t i = 1; i < present_.size(); i++) assert(path_before(present_[i - 1].path, present_[i].path));
  assert(state_ == State::kWhole || present_.empty());
}

std::vector<Writer::Change> Writer::compare(const std::vector<Node>& wanted) const {
  std::vector<Change> changes;
  size_t old = 0, next = 0;
  while (old < present_.size() || next < wanted.size()) {
    const bool removed =
        next == wanted.size() || (old < present_.size() && path_before(present_[old].path, wanted[next].path));
    const bool added = !removed && (old == present_.size() || present_[old].path != wanted[next].path);
    Change change;
    if (!added) change.before = &present_[old];
    if (!removed) {
      change.after = &wanted[next];
      change.first = next;
      change.count = 1;
    }
    const bool same = !added && !removed && *change.before == *change.after;
    const bool with_contents = added || removed || is_folder(*change.before) != is_folder(*change.after);
    if (!same && !removed && with_contents) change.count = whole_count(wanted, next);
    if (!added) old += !same && with_contents ? whole_count(present_, old) : 1;
    next += change.count;
    assert(added || old <= present_.size());
    if (!same) changes.push_back(change);
  }
  return changes;
}

// Makes the new entries, beside the folder's.
int Writer::stage(const std::vector<Node>& wanted, const std::vector<Change>& changes) const {
  if (const int error = remove_whole(folder_, kStage); error != 0) return error;
  if (mkdirat(folder_, kStage, 0700) != 0) return errno;
  for (size_t i = 0; i < changes.size(); i++) {
    const Change& change = changes[i];
    for (size_t node = change.first; node < change.first + change.count; node++) {
      assert(change.after != nullptr && node < wanted.size());
      const std::string path = staged(*change.after, i) + wanted[node].path.substr(change.after->path.size());
      if (const int error = make(folder_, path.c_str(), wanted[node]); error != 0) return error;
    }
  }
  return 0;
}

// The stage gets what was there before.
int Writer::exchange(std::vector<Change>& changes) const {
  const auto exchange_one = [this, &changes](size_t i) {
    Change& change = changes[i];
    const Node& entry = change.after != nullptr ? *change.after : *change.before;
    const char* place = entry.path.c_str();
    const std::string beside = staged(entry, i);
    int result;
    if (change.after == nullptr) {
      result = renameat(folder_, place, folder_, beside.c_str());
    } else if (change.before == nullptr) {
      result = renameat(folder_, beside.c_str(), folder_, place);
    } else {
      result = renameat2(folder_, beside.c_str(), folder_, place, RENAME_EXCHANGE);
      // Some file systems cannot exchange entries. This one cannot be undone.
      if (result != 0 && errno == EINVAL) result = renameat(folder_, beside.c_str(), folder_, place);
    }
    change.done = result == 0;
    return change.done ? 0 : errno;
  };
  // Links, in "dev" and "sys/class", come after the folders that they name, in "sys/devices", and go before these.
  for (size_t i = changes.size(); i > 0; i--) {
    if (changes[i - 1].after == nullptr) continue;
    if (const int error = exchange_one(i - 1); error != 0) return error;
  }
  for (size_t i = 0; i < changes.size(); i++) {
    if (changes[i].after != nullptr) continue;
    if (const int error = exchange_one(i); error != 0) return error;
  }
  return 0;
}

bool Writer::undo(std::vector<Change>& changes) const {
  bool whole = true;
  for (size_t i = 0; i < changes.size(); i++) {
    const Change& change = changes[i];
    if (!change.done) continue;
    const Node& entry = change.after != nullptr ? *change.after : *change.before;
    const char* place = entry.path.c_str();
    const std::string beside = staged(entry, i);
    int result;
    if (change.after == nullptr) {
      result = renameat(folder_, beside.c_str(), folder_, place);
    } else if (change.before == nullptr) {
      result = renameat(folder_, place, folder_, beside.c_str());
    } else {
      result = renameat2(folder_, place, folder_, beside.c_str(), RENAME_EXCHANGE);
    }
    whole = result == 0 && whole;
  }
  return whole;
}

int Writer::replace(const std::vector<Node>& wanted) {
  std::vector<Change> changes = compare(wanted);
  if (changes.empty()) return 0;
  int error = stage(wanted, changes);
  if (error == 0) {
    error = exchange(changes);
    if (error != 0 && !undo(changes)) {
      present_.clear();
      enter(State::kBroken);
    }
  }
  // Leftovers would only take room until the next call.
  remove_whole(folder_, kStage);
  if (error == 0) present_ = wanted;
  assert_consistent();
  return error;
}

int Writer::apply(Tree& wanted) {
  if (state_ == State::kBroken) return ESTALE;
  return replace(wanted.nodes());
}

int Writer::update(Tree& some) {
  if (state_ == State::kBroken) return ESTALE;
  std::vector<Node> wanted = present_;
  size_t at = 0;
  for (const Node& node : some.nodes()) {
    while (at < wanted.size() && path_before(wanted[at].path, node.path)) at++;
    if (at == wanted.size() || wanted[at].path != node.path || is_folder(wanted[at]) != is_folder(node)) return ENOENT;
    wanted[at] = node;
  }
  return replace(wanted);
}

int Writer::clear() {
  present_.clear();
  const int error = remove_contents(folder_);
  if (error == 0) enter(State::kWhole);
  assert_consistent();
  return error;
}

}  // namespace dapple::face
