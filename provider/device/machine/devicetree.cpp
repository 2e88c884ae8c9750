// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/machine/devicetree.hpp"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

namespace dapple::provider {
namespace {

constexpr int kMaxSteps = 64;          // of a walk upwards, which interconnects can bend into a circle
constexpr int kMaxDepth = 16;          // of the tree
constexpr int kMaxNodes = 1 << 16;     // that a search for a phandle looks at
constexpr size_t kMaxProperty = 4096;  // bytes

struct Cells {
  uint32_t values[kMaxProperty / 4];
  size_t count = 0;
};

bool read_cells(const Path& property, Cells& cells) {
  const ssize_t size = read_file(property, cells.values, sizeof(cells.values));
  if (size < 0 || size % 4 != 0) return false;
  cells.count = static_cast<size_t>(size) / 4;
  for (size_t i = 0; i < cells.count; ++i) cells.values[i] = be32toh(cells.values[i]);
  return true;
}

bool read_cell(const Path& property, uint32_t& value) {
  uint32_t cell;
  if (read_file(property, &cell, sizeof(cell)) != sizeof(cell)) return false;
  value = be32toh(cell);
  return true;
}

// The index of a string in a list of strings; -1 if the list lacks it.
int index_of(const Path& property, std::string_view wanted) {
  char text[kMaxProperty];
  const ssize_t size = read_file(property, text, sizeof(text));
  if (size <= 0) return -1;
  std::string_view rest(text, static_cast<size_t>(size));
  for (int index = 0; !rest.empty(); ++index) {
    const size_t end = rest.find('\0');
    if (rest.substr(0, end) == wanted) return index;
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  return -1;
}

bool has_phandle(const Path& node, uint32_t phandle) {
  uint32_t value;
  return (read_cell(node + "/phandle", value) || read_cell(node + "/linux,phandle", value)) && value == phandle;
}

// Searches `node` and the nodes below it, and sets `node` to the one with that phandle. The devicetree has no index of
// phandles.
bool find_phandle(Path& node, uint32_t phandle, int depth, int& nodes_left) {
  if (--nodes_left < 0) return false;
  if (has_phandle(node, phandle)) return true;
  if (depth == 0) return false;
  DIR* folder = opendir(node.c_str());
  if (folder == nullptr) return false;
  const size_t size = node.view().size();
  bool found = false;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    struct stat status;
    if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode)) continue;
    node += "/";
    node += entry->d_name;
    found = !node.empty() && find_phandle(node, phandle, depth - 1, nodes_left);
    if (found || node.empty()) break;
    node.shorten(size);
  }
  closedir(folder);
  return found;
}

bool find_phandle(const Path& tree, uint32_t phandle, Path& node) {
  int nodes_left = kMaxNodes;
  node = tree;
  return find_phandle(node, phandle, kMaxDepth, nodes_left);
}

// The node that a "dma-mem" interconnect names. False if there is none, or it is malformed.
bool find_interconnect(const Path& tree, const Path& node, Path& target) {
  const int wanted = index_of(node + "/interconnect-names", "dma-mem");
  Cells cells;
  if (wanted < 0 || !read_cells(node + "/interconnects", cells)) return false;
  size_t at = 0;
  for (int index = 0; at < cells.count; ++index) {
    const uint32_t phandle = cells.values[at++];
    uint32_t arguments = 0;
    // A phandle of 0 makes an empty entry, which has no arguments.
    if (phandle != 0) {
      if (!find_phandle(tree, phandle, target) || !read_cell(target + "/#interconnect-cells", arguments)) return false;
      if (arguments > cells.count - at) return false;
    }
    if (index == wanted) return phandle != 0;
    at += arguments;
  }
  return false;
}

// False if `node` is the root node.
bool go_to_dma_parent(const Path& tree, Path& node) {
  Path target;
  if (find_interconnect(tree, node, target)) {
    node = target;
    return true;
  }
  return node.view().size() > tree.view().size() && node.go_up();
}

}  // namespace

DmaProperty find_dma_property(const Path& tree, std::string_view node_name) {
  Path node = tree + node_name;
  struct stat status;
  if (node.empty() || stat(node.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return DmaProperty::kUnreadable;
  for (int step = 0; step < kMaxSteps; ++step) {
    const Look coherent = look(node + "/dma-coherent");
    if (coherent == Look::kThere) return DmaProperty::kCoherent;
    const Look noncoherent = look(node + "/dma-noncoherent");
    if (coherent == Look::kUnreadable || noncoherent == Look::kUnreadable) return DmaProperty::kUnreadable;
    if (noncoherent == Look::kThere) return DmaProperty::kNoncoherent;
    if (!go_to_dma_parent(tree, node)) return DmaProperty::kNone;
  }
  return DmaProperty::kUnreadable;
}

}  // namespace dapple::provider
