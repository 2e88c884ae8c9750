// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Knows the hosts that take marks. Other devices must never get one, so each peer's host is asked first, a few times
// for each pair of addresses (provider/protocol/mark_question.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "provider/common/clock.hpp"
#include "provider/protocol/mark_question.hpp"
#include "provider/soft/check/races/queue_pair_name.hpp"
#include "provider/system/addresses.hpp"
#include "roce/clock.hpp"

namespace dapple::soft::check {

// Confined: the caller has a lock. Times are those of now_ns().
class MarkHosts {
 public:
  // The question to send now; none if the host has answered, has been asked often enough, or was asked just now.
  std::optional<MarkQuestion> due(const Addresses& path, uint64_t now);
  // When to ask again; roce::kNever: not.
  uint64_t deadline(const Addresses& path) const;
  void answered(const Addresses& path, const MarkAnswer& answer);
  // The number of the host; kThisHost if it takes no marks.
  uint64_t host(const Addresses& path) const;

  static constexpr size_t kMost = 256;  // further ones get no marks
  static constexpr uint32_t kTries = 5;
  static constexpr uint64_t kFirstWait = 20'000'000;  // doubles each time

 private:
  struct Host {
    Addresses path;
    uint64_t transaction = 0;
    uint32_t tries = 0;
    uint64_t next = 0;
    uint64_t number = kThisHost;
    bool has_answered = false;
  };

  const Host* find(const Addresses& path) const;

  std::vector<Host> hosts_;
};

}  // namespace dapple::soft::check
