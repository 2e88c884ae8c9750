// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Messages about XRC domains of files, which the processes of a network namespace share. dappled knows which processes
// have opened a domain, and hands each of them the same piece of memory. Everything else happens between the processes,
// in this memory (provider/soft/xrc/domain_memory.hpp).
#pragma once

#include <cstdint>

#include "provider/protocol/messages.hpp"

namespace dapple::soft {

enum XrcOpenFlags : uint32_t {
  kXrcCreates = 1,  // a domain that nobody has opened is made; else it is kMissing
  kXrcIsNew = 2,    // a domain that somebody has opened is not opened: kExists
};

// Not an errno: a lack of dappled's, or of the way to it, could have the same one.
enum class XrcOutcome : uint32_t { kOpen, kMissing, kExists };

// With a descriptor of the file, whose inode names the domain. The reply kOpen brings the domain's memory. A member
// that comes back to a new dappled passes the memory that it has as a second descriptor; the reply brings none then.
struct XrcOpenRequest {
  MessageHeader header;
  uint32_t device = 0;  // DeviceInfo::index
  uint32_t flags = 0;   // XrcOpenFlags
};

struct XrcOpenReply {
  MessageHeader header;
  XrcOutcome outcome = XrcOutcome::kOpen;
  uint32_t reserved = 0;
};

// The end of the connection closes a domain, too.
struct XrcCloseRequest {
  MessageHeader header;
  uint32_t device = 0;
  uint32_t reserved = 0;
  uint64_t file_device = 0;
  uint64_t file_inode = 0;
};

inline constexpr uint32_t kMaxXrcMembers = 64;  // processes that have a domain open

// The size of a domain's memory. Pages that nobody uses take no room.
inline constexpr int64_t kXrcBoardSize = int64_t{1} << 20;
inline constexpr int64_t kXrcChannelSize = int64_t{1} << 16;
inline constexpr int64_t kXrcMemorySize = kXrcBoardSize + kMaxXrcMembers * kMaxXrcMembers * kXrcChannelSize;

}  // namespace dapple::soft
