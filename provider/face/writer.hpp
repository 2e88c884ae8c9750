// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Brings a folder to the state that a Tree describes. A reader sees the old or the new contents of each entry, and new
// folders with all that is in them. A call that fails changes nothing.
#pragma once

#include <string>
#include <vector>

#include "provider/face/tree.hpp"
#include "provider/protocol/tree_stage.hpp"

namespace dapple::face {

// New entries are made here, in the folder, and then take their places. A call leaves nothing there.
inline constexpr const char (&kStage)[sizeof soft::kTreeStage] = soft::kTreeStage;

// Confined to a thread. Files get the mode 0444 and folders 0755: the process' umask must allow both.
class Writer {
 public:
  // The folder stays the caller's. It is empty, or has what a writer of a dead process has left: call clear() then.
  explicit Writer(int folder) : folder_(folder) {}

  // Writes only what differs. 0 or an errno.
  int apply(Tree& wanted);
  // The same for some files of the present tree; all others stay. ENOENT if one of them is not there.
  int update(Tree& some);
  // Removes all that is in the folder. 0 or an errno.
  int clear();

  // A failure could not be undone: somebody else has changed the folder. The writer refuses all calls but clear().
  bool is_broken() const { return state_ == State::kBroken; }
  const std::vector<Node>& present() const { return present_; }

 private:
  enum class State : uint8_t { kWhole, kBroken };
  struct Change {
    const Node* before = nullptr;  // the entry that is there; its contents go with it
    const Node* after = nullptr;
    size_t first = 0, count = 0;  // the nodes of `after` and its contents
    bool done = false;
  };

  void enter(State state);
  std::vector<Change> compare(const std::vector<Node>& wanted) const;
  int stage(const std::vector<Node>& wanted, const std::vector<Change>& changes) const;
  int exchange(std::vector<Change>& changes) const;
  bool undo(std::vector<Change>& changes) const;
  int replace(const std::vector<Node>& wanted);
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;

  const int folder_;
  State state_ = State::kWhole;
  std::vector<Node> present_;
};

// Removes the entry `name` of a folder, and all that is in it, without following links. 0 or an errno; 0 if it is gone.
int remove_whole(int folder, const char* name);
// The same for all that is in a folder.
int remove_contents(int folder);

}  // namespace dapple::face
