// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The processes that may copy bytes to and from this process' memory.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cassert>
#include <cstdint>

#include "provider/common/mutex.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/soft/same_host/announcements.hpp"
#include "provider/soft/same_host/ring.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// One such process, as the reader of its ring knows it. The last user deletes it.
class Placer {
 public:
  Placer() = default;
  virtual ~Placer() = default;
  Placer(const Placer&) = delete;
  Placer& operator=(const Placer&) = delete;

  void use() {
    [[maybe_unused]] const uint32_t before = users_.fetch_add(1, std::memory_order_relaxed);
    assert(before > 0);
  }
  void let_go() {
    const uint32_t before = users_.fetch_sub(1, std::memory_order_acq_rel);
    assert(before > 0);
    if (before == 1) delete this;
  }

  OwnedFd socket;          // its end shows the end of the process
  RingMemory memory;       // with the announcements
  pid_t process = 0;       // 0: of another PID namespace
  uint32_t challenge = 0;  // the number of the one that it has not answered yet; 0: none

 private:
  std::atomic<uint32_t> users_{1};
};

// Internally locked.
class Placers {
 public:
  // Before the process can copy anything. False if there is no room.
  bool add(Placer& placer);
  void remove(Placer& placer);

  static constexpr uint64_t kNoLimit = UINT64_MAX;
  // Returns when no process uses the entry any more. The entry is dead already. Waits for a process that is stopped,
  // and then writes a line to standard error once a second; does not wait for a process that has ended. False if a
  // process still uses the entry after `most_ns`.
  bool await_end_of(const AnnouncedEntry& entry, uint64_t most_ns = kNoLimit);

 private:
  Placer* take_user(uint32_t& place, const AnnouncedEntry& entry);

  Mutex mutex_{LockRank::kPlacers};
  Placer* placers_[kMaxSlots] = {};
  uint32_t end_ = 0;  // places in use are below
};

}  // namespace dapple::soft
