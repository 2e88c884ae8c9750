// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memfd of a channel's journal, mapped: an entry is written without a system call. A process that is killed at any
// moment leaves each entry as it was before or after a write. The file cannot shrink, so that a program that has the
// descriptor cannot take the pages away.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "provider/protocol/cm_messages.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::dappled::rdma_cm {

// Confined to one thread.
class JournalFile {
 public:
  JournalFile() = default;
  JournalFile(const JournalFile&) = delete;
  JournalFile& operator=(const JournalFile&) = delete;
  ~JournalFile();

  // Makes a new file for the channel of this name. 0 or an errno.
  int create(const soft::CmChannelName& name);
  // Opens a file that another process has left; `name` becomes that of its channel. EINVAL if it is not a journal.
  int open(soft::OwnedFd file, soft::CmChannelName& name);
  int fd() const { return file_.get(); }
  // After create() or open(). Programs write there, too.
  soft::CmFront& front() const { return *reinterpret_cast<soft::CmFront*>(bytes_); }

  // Entries have kJournalEntrySize bytes. The entry gets lost if there is no memory for it.
  void write(uint32_t index, std::span<const std::byte> entry);
  // The entries for which the file has room.
  uint32_t room() const { return room_; }
  // False if there is none: behind the last one, or because it got lost. Any bytes may be damaged.
  bool read(uint32_t index, std::span<std::byte> entry) const;
  // Removes the entries from this index on.
  void cut(uint32_t index);

 private:
  struct Record;
  Record& record(uint32_t index) const;
  bool make_room(uint32_t count);
  int map(size_t size);

  soft::OwnedFd file_;
  std::byte* bytes_ = nullptr;
  size_t size_ = 0;
  uint32_t room_ = 0;  // entries that fit
};

}  // namespace dapple::dappled::rdma_cm
