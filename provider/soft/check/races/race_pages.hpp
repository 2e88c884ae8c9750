// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// What a program tells the other programs of this host about its requests, in memory that it shares with them: with the
// PSN of a packet, the receiver finds the request's stamp, and the requests that the sender knew to be complete at its
// post. One writer; the readers trust nothing that they read.
#pragma once

#include <atomic>
#include <cstdint>

#include "provider/member/counters_file.hpp"
#include "provider/network/addresses.hpp"
#include "provider/protocol/shared_row.hpp"
#include "provider/soft/check/races/known_requests.hpp"

namespace dapple::soft::check {

// Several requests have the same one, if nothing has completed between them.
struct KnownRow {
  uint64_t number = 0;  // counts up from 1; 0: the row is free
  KnownRequests known;

  bool is_used() const { return number != 0; }
};

struct RequestRow {
  uint64_t stamp = 0;  // 0: the row is free
  uint64_t known = 0;  // KnownRow::number
  uint32_t first_psn = 0;
  uint32_t packets = 0;

  bool is_used() const { return stamp != 0; }
};

// The answer to a Read or an atomic of a peer.
struct AnswerRow {
  uint64_t known = 0;  // KnownRow::number; 0: the row is free
  uint32_t psn = 0;
  uint32_t reserved = 0;

  bool is_used() const { return known != 0; }
};

// A race of a peer's request at the memory of this program.
struct RaceRow {
  uint64_t stamp = 0;  // of the request; 0: the row is free
  uint32_t other_qpn = 0;
  int32_t other_process = 0;

  bool is_used() const { return stamp != 0; }
};

struct LaneRow {
  uint32_t qpn = 0;     // 0: the lane is free
  uint32_t peer = 0;    // the queue pair at the other end
  Addresses addresses;  // of the packets that go there

  bool is_used() const { return qpn != 0; }
};

inline constexpr uint32_t kRequestRows = 128;
inline constexpr uint32_t kAnswerRows = 32;
inline constexpr uint32_t kRaceRows = 8;

// A connected queue pair.
struct Lane {
  SharedRow<LaneRow> row;
  std::atomic<uint32_t> requests;  // so far
  std::atomic<uint32_t> answers;
  std::atomic<uint32_t> races;
  SharedRow<RequestRow> request_rows[kRequestRows];  // the last ones
  SharedRow<AnswerRow> answer_rows[kAnswerRows];
  SharedRow<RaceRow> race_rows[kRaceRows];
};

inline constexpr uint32_t kLanes = 64;
inline constexpr uint32_t kKnownRows = 128;

struct RacePages {
  std::atomic<int32_t> process;
  SharedRow<KnownRow> of_requests[kKnownRows];  // the last ones
  SharedRow<KnownRow> of_answers[kKnownRows];
  Lane lanes[kLanes];  // by the lower bits of the queue pair's number
};
static_assert(sizeof(RacePages) <= kSlotRacesSize);
static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<int32_t>::is_always_lock_free);

}  // namespace dapple::soft::check
