// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/notes/noted_polls.hpp"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "provider/common/clock.hpp"
#include "provider/soft/hang/notes/notes.hpp"

namespace dapple::soft::hang {
namespace {

// The calling thread's polls in vain since its last completion.
struct PollsInVain {
  uint64_t since_ns = 0;   // 0: none
  uint64_t period_ns = 0;  // when the notes of this period began
  int noted = 0;           // in this period
  bool is_noted = false;
};
[[gnu::tls_model("initial-exec")]] thread_local constinit PollsInVain in_vain_here;

// A thread polls a million times in a second, so some polls in each period are noted: enough to see all queues that it
// polls in turn.
constexpr uint64_t kPeriod = 10'000'000;  // nanoseconds
constexpr int kNotedInPeriod = static_cast<int>(Poller::kMax);

void note_poll_in_vain(const ibv_cq* cq) {
  Notes::get()->note_empty_poll();
  PollsInVain& own = in_vain_here;
  const uint64_t now = now_ns(CLOCK_MONOTONIC_COARSE);  // some milliseconds old
  if (own.since_ns == 0) {
    own.since_ns = own.period_ns = now;
    own.noted = kNotedInPeriod;
  }
  if (now - own.period_ns >= kPeriod) {
    own.period_ns = now;
    own.noted = 0;
  }
  if (own.noted == kNotedInPeriod) return;
  own.noted++;
  assert(own.noted <= kNotedInPeriod && own.since_ns != 0);
  own.is_noted = true;
  Notes::get()->change([&](Notes::Tables& tables) {
    Poller& poller = tables.pollers[gettid()];
    poller.since_ns = own.since_ns;
    const bool is_known = std::find(poller.cqs.begin(), poller.cqs.end(), cq) != poller.cqs.end();
    if (!is_known && poller.cqs.size() < Poller::kMax) poller.cqs.push_back(cq);
    poller.last_ns = now;
    assert(poller.cqs.size() <= Poller::kMax && poller.since_ns <= poller.last_ns);
  });
}

}  // namespace

void note_poll(ibv_cq* cq, bool in_vain) {
  std::atomic<bool>& was_polled = ours<Cq>(cq)->was_polled;
  if (!was_polled.load(std::memory_order_relaxed)) was_polled.store(true, std::memory_order_relaxed);
  if (in_vain) {
    note_poll_in_vain(cq);
    return;
  }
  Notes::get()->note_progress();
  if (in_vain_here.is_noted) Notes::get()->change([](Notes::Tables& tables) { tables.pollers.erase(gettid()); });
  in_vain_here = {};
}

}  // namespace dapple::soft::hang
