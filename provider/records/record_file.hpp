// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A file of DAPPLE_PCAP or DAPPLE_TRACE. Several processes may append records to it.
#pragma once

#include <sys/uio.h>

#include <span>

#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// Any thread.
class RecordFile {
 public:
  RecordFile() = default;
  // `file` is open for appending.
  explicit RecordFile(OwnedFd file) : file_(std::move(file)) {}

  explicit operator bool() const { return static_cast<bool>(file_); }
  OwnedFd& descriptor() { return file_; }

  // Appends one record, of at most kMaxParts parts. If the file takes no more, because the disk is full for example,
  // one line on standard error says so, and further records are dropped: behind a record that was cut, no reader would
  // find them. The program gets no signal.
  void append(std::span<const iovec> parts);

  static constexpr size_t kMaxParts = 3;

 private:
  void end(int error);

  OwnedFd file_;
  bool ended_ = false;  // accessed by std::atomic_ref, so that an object can be moved before threads use it
};

}  // namespace dapple::soft
