// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The marks that a queue pair has got from its peer on another host. Each may be lost, come twice, or be another
// program's invention; then a request is not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "provider/soft/check/races/mark.hpp"
#include "provider/soft/check/races/told_requests.hpp"

namespace dapple::soft::check {

// Confined: the caller has a lock. Bounded: the oldest marks are forgotten.
class PeerMarks {
 public:
  // `mark` is as take_over() leaves it; it came at `now`.
  void add(const Mark& mark, uint64_t now);

  // The number of the peer's host; kThisHost: no mark has come.
  uint64_t host() const { return host_; }
  int process() const { return process_; }
  // Of the peer's newest request; 0: none.
  uint64_t last_stamp() const { return last_stamp_; }

  // The peer's request with this PSN. If there is none, the marks of earlier packets are forgotten, because PSNs come
  // again.
  std::optional<ToldRequest> request(uint32_t psn);

  // A packet with a part of the result of an own request has come, which has this stamp and begins with this PSN.
  void note_result(uint64_t stamp, uint32_t first_psn, uint32_t psn, uint32_t check);
  // Returns the requests that the target knew when it answered that one, which is complete. None if a mark is missing.
  std::optional<KnownRequests> take_answer(uint64_t stamp, uint32_t packets);

  // The races that the peer has told since the last call.
  std::vector<RaceRow> take_races();

  static constexpr size_t kMaxRequests = 128;
  static constexpr size_t kMaxAnswers = 64;
  static constexpr size_t kMaxResults = 256;
  // Before PSNs come again, the marks with them are forgotten.
  static constexpr uint64_t kMaxPsns = 1 << 22;

 private:
  struct MarkedRequest : ToldRequest {
    uint64_t place = 0;  // its first PSN, which does not come again
  };
  struct Answer {
    uint64_t stamp = 0;  // of the request
    uint32_t psn = 0;
    uint32_t check = 0;
    KnownRequests known;
  };
  // Of a request that is not complete.
  struct Result {
    uint32_t packets = 0;  // that have come, from the first one on
    bool is_marked = true;
    KnownRequests known;
  };

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  void add_request(const Mark& mark, uint64_t now);

  uint64_t host_ = kThisHost;
  int process_ = 0;
  uint64_t last_stamp_ = 0;
  std::deque<MarkedRequest> requests_;
  std::deque<Answer> answers_;
  std::map<uint64_t, Result> results_;  // by the stamps of the requests
  std::deque<RaceRow> races_;
};

}  // namespace dapple::soft::check
