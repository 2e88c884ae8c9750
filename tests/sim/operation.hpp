// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A request of the simulator, with the known facts about its fate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "roce/host/request.hpp"
#include "tests/sim/memory.hpp"
#include "tests/sim/random.hpp"

namespace dapple::sim {

using Statuses = uint32_t;  // a set of roce::CompletionStatus

constexpr Statuses status_bit(roce::CompletionStatus status) {
  return 1U << static_cast<unsigned>(status);
}

struct Operation {
  // Part of a Read's source as the responder saw it.
  struct Seen {
    uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };

  roce::SendRequest request;  // without its segments
  std::vector<roce::Segment> segments;
  uint32_t length = 0;
  bool is_signaled = true;
  // must_fail: it must not succeed. excuses: it may fail with these statuses, besides those of the whole stream.
  bool must_fail = false;
  bool is_unreachable = false;  // no one may ever receive it
  Statuses excuses = 0;

  // The state at the responder.
  uint64_t written = 0;    // bytes, in order
  bool executed = false;   // an atomic
  uint64_t original = 0;   // its result
  bool delivered = false;  // a message: its receive has completed
  uint64_t flushes = 0;
  std::vector<Seen> seen;
  bool is_counted_by_peer = false;  // the responder's observer was told of it

  // The state at the requester.
  uint64_t result_bytes = 0;
  bool completed = false;
  roce::CompletionStatus status{};
  std::optional<roce::CompletionStatus> counted;  // with this status its observer was told of it

  roce::SendOpcode opcode() const { return request.opcode; }
  bool is_write() const {
    return opcode() == roce::SendOpcode::kWrite || opcode() == roce::SendOpcode::kWriteImmediate;
  }
  bool is_send() const {
    return opcode() == roce::SendOpcode::kSend || opcode() == roce::SendOpcode::kSendImmediate ||
           opcode() == roce::SendOpcode::kSendInvalidate;
  }
  bool is_atomic() const {
    return opcode() == roce::SendOpcode::kCompareSwap || opcode() == roce::SendOpcode::kFetchAdd ||
           opcode() == roce::SendOpcode::kAtomicWrite;
  }
  bool is_local() const {
    return opcode() == roce::SendOpcode::kBindWindow || opcode() == roce::SendOpcode::kLocalInvalidate;
  }
  bool has_source() const { return is_send() || is_write(); }
  // True if it consumes a receive.
  bool is_message() const { return is_send() || opcode() == roce::SendOpcode::kWriteImmediate; }
  // True when every change to the responder's memory was made.
  bool took_effect() const {
    if (is_write()) return written == length;
    return !is_atomic() || executed;
  }
};

// Byte `offset` of the data of the request with this id.
constexpr std::byte content_byte(uint64_t id, uint64_t offset) {
  return static_cast<std::byte>(mixed(id * 0x2545F4914F6CDD1D + offset / 8) >> (offset % 8 * 8));
}

}  // namespace dapple::sim
