// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A tree of files as plain data: what a folder is to contain.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dapple::face {

enum class NodeKind : uint8_t {
  kFolder,
  kFile,
  kLink,
  kEmpty,   // an entry whose read() fails with EINVAL in the kernel's tree
  kDevice,  // a character device that nobody can open
};

struct Node {
  std::string path;  // relative to the tree's folder
  NodeKind kind = NodeKind::kFolder;
  std::string text;  // a file's contents, or a link's target

  bool operator==(const Node&) const = default;
};

// The order of paths in which a folder's contents follow the folder at once: '/' comes before all other characters.
bool path_before(std::string_view a, std::string_view b);
// Tells whether `path` lies in `folder`, at any depth.
bool is_inside(std::string_view path, std::string_view folder);
// As many "../" as lead from a folder at `path` to the first folder of the path.
std::string way_up(std::string_view path);

// Of nodes in the order of Tree::nodes(): the one at `path`, which may lead through links and "..". Null if none is
// there, if the path leads out of the nodes' folder, or if it follows more than kMaxLinks links. The node itself may
// be a link.
inline constexpr int kMaxLinks = 40;
const Node* find_through_links(const std::vector<Node>& nodes, std::string_view path);

// Confined to a thread.
class Tree {
 public:
  // Folders on the way are added, too. The last call for a path counts.
  void add_folder(std::string_view path) { add(path, NodeKind::kFolder, {}); }
  void add_file(std::string_view path, std::string_view text) { add(path, NodeKind::kFile, text); }
  void add_link(std::string_view path, std::string_view target) { add(path, NodeKind::kLink, target); }
  void add_empty(std::string_view path) { add(path, NodeKind::kEmpty, {}); }
  void add_device(std::string_view path) { add(path, NodeKind::kDevice, {}); }

  // In the order of path_before(), without doubles.
  const std::vector<Node>& nodes();
  // Null if it is not there. Links are not followed.
  const Node* find(std::string_view path);

 private:
  void add(std::string_view path, NodeKind kind, std::string_view text);
  void sort();
  // Asserts the conditions that hold for a sorted tree.
  void assert_consistent() const;

  std::vector<Node> nodes_;
  std::string last_folder_;  // the folder of the last path, which is there
  bool sorted_ = true;
};

}  // namespace dapple::face
