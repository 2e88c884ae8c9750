// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Knows the hosts that take marks. Other devices must never get one, so each peer's host is asked first, a few times
// for each route (provider/protocol/mark_question.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "provider/common/clock.hpp"
#include "provider/network/addresses.hpp"
#include "provider/protocol/mark_question.hpp"
#include "provider/soft/check/races/queue_pair_name.hpp"
#include "roce/host/clock.hpp"

namespace dapple::soft::check {

// Each network device has link-local addresses of its own.
struct Route : Addresses {
  uint32_t netdev_index = 0;
};

inline bool same(const Route& a, const Route& b) {
  return a.netdev_index == b.netdev_index && same(static_cast<const Addresses&>(a), static_cast<const Addresses&>(b));
}

// Confined: the caller has a lock. Times are those of now_ns().
class MarkHosts {
 public:
  // The question to send now; none if the host has answered, has been asked often enough, or was asked just now.
  std::optional<MarkQuestion> due(const Route& route, uint64_t now);
  // When to ask again; roce::kNever: not.
  uint64_t deadline(const Route& route) const;
  void answered(const Route& route, const MarkAnswer& answer);
  // The number of the host; kThisHost if it takes no marks.
  uint64_t host(const Route& route) const;
  bool has(const Route& route) const { return find(route) != nullptr; }
  // Another host may have the address when somebody asks again.
  void forget(const Route& route);

  static constexpr size_t kMax = 256;  // further ones get no marks
  static constexpr uint32_t kTries = 5;
  static constexpr uint64_t kFirstWait = 20'000'000;  // doubles each time

 private:
  struct Host {
    Route route;
    uint64_t transaction = 0;
    uint32_t tries = 0;
    uint64_t next = 0;
    uint64_t number = kThisHost;
    bool has_answered = false;
  };

  const Host* find(const Route& route) const;
  // Asserts the conditions that hold between two calls.
  void assert_consistent(const Host& host) const;

  std::vector<Host> hosts_;
};

}  // namespace dapple::soft::check
