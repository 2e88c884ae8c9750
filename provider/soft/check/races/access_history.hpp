// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The last accesses of devices to the memory of a program: those of its peers, and those of its own requests. A new
// access races with an earlier one of some of these bytes if its program did not know the earlier one to be complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "provider/soft/check/races/known_requests.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft::check {

struct NotedAccess {
  enum class Kind : uint8_t { kRead, kWrite, kAtomic };

  QueuePairName name = 0;  // of the queue pair that has the request
  uint64_t stamp = 0;      // of the request
  uint64_t since = 0;      // ToldRequest has it; 0: the stamp
  Kind kind = Kind::kRead;
  roce::SendOpcode opcode{};
  bool is_own = false;  // the program's own request
  uint32_t via = 0;     // of a peer's request: the queue pair that it reaches
  uint32_t key = 0;
  uint64_t arrived = 0;  // when
  bool is_word = false;  // all bytes are in one word; add() sets it
};

// Confined: the caller has a lock.
class AccessHistory {
 public:
  struct Race {
    NotedAccess earlier;
    uintptr_t begin = 0, end = 0;  // the bytes of both
  };

  // `known`: to the program of the request at its post. Accesses that arrived before `posted` come before this one,
  // too: it waited for them, as a receive does that is posted after them. Returns a race of a peer's access, if there
  // is one: what the program has posted itself comes after all that has arrived.
  std::optional<Race> add(uintptr_t begin, uintptr_t end, NotedAccess access, const KnownRequests& known,
                          uint64_t posted = 0);
  // The memory means something else now.
  void forget(uintptr_t begin, uintptr_t end);
  // Tells whether a Write to some of these bytes may have come.
  bool may_have_write(uintptr_t begin, uintptr_t end) const;

  // If there are more pieces of memory, or more accesses to one, some are forgotten.
  static constexpr size_t kMaxPieces = 16384;
  static constexpr size_t kMaxAccesses = 8;

 private:
  struct Piece {
    uintptr_t end = 0;
    std::vector<NotedAccess> accesses;
  };
  using Pieces = std::map<uintptr_t, Piece>;  // by the first byte

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  // Makes a piece begin there, if one has this byte. Returns the first piece that begins there or later.
  Pieces::iterator split(uintptr_t at);
  void limit();

  Pieces pieces_;
  uintptr_t last_forgotten_ = 0;
  bool has_forgotten_ = false;
};

}  // namespace dapple::soft::check
