// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The descriptors of the program that are doors, and ours that the program must not close.
//
// Every function may be called from a signal handler, and in a child of vfork(), which shares this memory: there the
// table is read and never written. No function locks or allocates. The inode shows that a descriptor was closed by a
// bare system call.
#pragma once

#include <stdint.h>

#include <atomic>

#include "provider/protocol/cm_messages.hpp"

namespace dapple::doors {

// kTreeFile, kEmptyEntry: an open file of the rendered tree, and one whose read() fails with EINVAL. kSharedFolder: a
// folder of the kernel that has entries in the tree.
enum class Kind : uint8_t { kNetlink, kUverbs, kChannel, kRdmaCm, kTreeFile, kEmptyEntry, kSharedFolder, kHidden };

inline constexpr int kMaxDescriptor = 65536;

struct Door {
  Kind kind;
  uint32_t device = 0;  // kUverbs: DeviceInfo::index
  // Hidden descriptors, closed with the door's last copy. kChannel: the other end. kRdmaCm: dappled's end, the journal.
  // kSharedFolder: the tree's folder, once its list is read.
  int attached[2] = {-1, -1};
  soft::CmChannelName channel = {};  // kRdmaCm
  soft::CmFront* front = nullptr;    // kRdmaCm: mapped as long as the door has users, kFrontSize bytes
};

inline constexpr size_t kFrontSize = 4096;

namespace detail {
// 0: not ours; else the number of a record.
extern std::atomic<uint16_t> record_of[kMaxDescriptor];
}  // namespace detail

// The first test of each wrapper, nearly always false.
inline bool maybe_ours(int fd) {
  return fd >= 0 && fd < kMaxDescriptor && detail::record_of[fd].load(std::memory_order_relaxed) != 0;
}

// False if the descriptor is not ours.
bool find(int fd, Door& door);
// The same for doors of one kind. Other descriptors cost no system call.
bool find(int fd, Kind kind, Door& door);
// While one exists, the door's attached descriptors stay open, and its memory mapped.
class HeldDoor {
 public:
  // Makes no system call. The descriptor may have been closed by a bare system call.
  explicit HeldDoor(int fd);
  ~HeldDoor();
  HeldDoor(const HeldDoor&) = delete;
  HeldDoor& operator=(const HeldDoor&) = delete;
  // Null if the descriptor is not ours.
  const Door* get() const;

 private:
  unsigned number_ = 0;
};
// As find(), without a system call: the descriptor may have been closed by a bare system call.
bool find_unchecked(int fd, Door& door);

// From now on the descriptor is a door. False with EMFILE if there is no room for another.
bool track(int fd, const Door& door);

// A descriptor is now a copy of another one. Its number has no other meaning any more.
void copied(int from, int to);

// The descriptor is about to be closed.
void forget(int fd);

// True in the process that owns the table, false in a child of vfork().
bool owns_table();
// True in that process, and in its children of vfork(), which share its memory. False in other children, which have a
// copy. Makes no system call.
bool has_own_memory();
// The id of the process that owns the table. Makes no system call.
pid_t table_owner();

// Calls visit(door, argument) for each open file of a kind until it returns false. Attached descriptors stay open
// meanwhile.
void visit(Kind kind, bool (*visit)(const Door& door, void* argument), void* argument);

// The hidden descriptors among first..last are kept, and the other doors forgotten. Calls close_some(from, to) for
// each piece that may be closed, until one fails.
int close_pieces(unsigned first, unsigned last, int (*close_some)(unsigned from, unsigned to));

// As in Doors (provider/system/doors.hpp).
int hide(int fd);
void close_hidden(int fd);

}  // namespace dapple::doors
