// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/progress.hpp"

#include <sched.h>

#include <cassert>

#include "provider/common/clock.hpp"
#include "provider/common/host_guards.hpp"
#include "provider/soft/locks/spin_pause.hpp"
#include "provider/soft/progress/engine_turn.hpp"
#include "provider/soft/scheduling/yield_backoff.hpp"

namespace dapple::soft {
namespace {

// The most queue pairs, or rounds, of one call, so that packets and deadlines get their turn, too.
constexpr uint32_t kMaxAtOnce = 64;
constexpr uint32_t kPollsInVain = 8;
// A peer on this host answers within that many polls, which cost little then.
constexpr uint32_t kSameHostPasses = 256;
// Meanwhile a poller looks at the network once in that many passes: a look takes as long as dozens of them.
constexpr uint32_t kPassesUnlooked = 512;
constexpr uint32_t kPassesToADeadline = 8;

roce::Time now() {
  return now_ns();
}

}  // namespace

bool Progress::expire_due() {
  assert_held(receive_mutex_);
  TurnClock& clock = arrivals_.clock();
  const roce::Time earliest = engines_.timers.earliest();
  if (earliest == roce::kNever || earliest > clock.rough() + roce::kRoughError) return false;
  bool any = false;
  for (uint32_t i = 0; i < kMaxAtOnce; ++i) {
    Qp* qp = engines_.timers.pop_due(clock.exact());
    if (qp == nullptr) break;
    any = true;
    {
      const EngineTurn turn(engines_, *qp, clock, EngineTurn::End::kSend);
      if (qp->engine->deadline() <= clock.exact()) qp->engine->expire(clock);
    }
    QpTable::unpin(*qp);
  }
  return any;
}

// Lets the queue pairs that wait for their turn send. True if one of them could send.
bool Progress::run_ready() {
  assert_held(receive_mutex_);
  if (!engines_.ready.any()) return false;
  const Qp* last = nullptr;
  bool any = false;
  for (uint32_t i = 0; i < kMaxAtOnce; ++i) {
    Qp* qp = engines_.ready.take(last);
    if (qp == nullptr) break;
    {
      EngineTurn turn(engines_, *qp, arrivals_.clock(), EngineTurn::End::kSend);
      Ready::began(*qp);
      turn.finish_engine();
      any |= !qp->scheduling.stuck;
    }
    const bool was_last = qp == last;
    QpTable::unpin(*qp);
    if (was_last) break;
  }
  return any;
}

// Does the work that the background thread found while another thread had the lock. Not inlined, because most passes
// find none.
[[gnu::noinline]] void Progress::attend_links() {
  assert_held(receive_mutex_);
  links_due_.store(false, std::memory_order_relaxed);
  const CancelGuard whole;
  links_.attend();
}

// False if there is no such work.
bool Progress::look_after_links() {
  if (!links_due_.load(std::memory_order_relaxed)) return false;
  attend_links();
  return true;
}

// Packets of this host cost no system call. While they come, a poller pays for a look at the network only now and then.
bool Progress::receive_packets(Worker worker) {
  assert_held(receive_mutex_);
  look_after_links();
  bool any = links_.receive(arrivals_) > 0;
  if (any) {
    same_host_passes_ = kSameHostPasses;
  } else if (same_host_passes_ > 0) {
    --same_host_passes_;
  }
  if (same_host_passes_ > 0 && worker == Worker::kPoller && ++unlooked_passes_ < kPassesUnlooked) return any;
  assert(same_host_passes_ <= kSameHostPasses && unlooked_passes_ <= kPassesUnlooked);
  unlooked_passes_ = 0;
  return wire().receive(arrivals_) > 0 || any;
}

// Not inlined, because most passes find nothing to send.
[[gnu::noinline]] void Progress::send_held(roce::Owes least) {
  assert_held(receive_mutex_);
  using Held = HeldAcknowledgements<Qp>;
  engines_.held.send(least, [this](Qp& qp, roce::Owes urgency) {
    EngineTurn turn(engines_, qp, arrivals_.clock(), EngineTurn::End::kWake);
    const Held::Verdict verdict = Held::judge(qp.held, qp.engine->owes(), urgency);
    if (verdict == Held::Verdict::kGoes) turn.ends_by(EngineTurn::End::kSend);
    return verdict != Held::Verdict::kWaits;
  });
}

bool Progress::pass(Worker worker) {
  assert_held(receive_mutex_);
  arrivals_.begin_pass();
  if (const roce::Owes due = engines_.held.begin_pass(worker); due != roce::Owes::kMore) send_held(due);
  bool any = receive_packets(worker);
  arrivals_.finish_all();
  // A look at the clock takes as long as one at the rings. A thread that polls is soon here again.
  if (worker == Worker::kOther || engines_.held.passes() % kPassesToADeadline == 0) any |= expire_due();
  any |= run_ready();
  return any;
}

void Progress::poll() {
  [[gnu::tls_model("initial-exec")]] static thread_local constinit YieldBackoff yield;
  if (!receive_mutex_.try_lock()) {
    engines_.handover.count_poll();
    // The lock's owner may wait for this CPU.
    yield(now, sched_yield);
    return;
  }
  engines_.handover.begin_poll();
  const bool any = pass(Worker::kPoller);
  if (engines_.held.must_not_wait()) send_held(roce::Owes::kLaterAcknowledgement);
  const bool peer_is_near = same_host_passes_ > 0;
  engines_.handover.end_poll();
  receive_mutex_.unlock();
  // A program that polls in a loop would keep its peer from a CPU that they share.
  [[gnu::tls_model("initial-exec")]] static thread_local constinit uint32_t in_vain = 0;
  in_vain = any ? 0 : in_vain + 1;
  // Two CPUs of a virtual machine may be two threads of one core, and then polls in vain would slow the peer down.
  if (in_vain != 0 && peer_is_near) spin_pause();
  // Each yield looks at the clock, too.
  if (in_vain != 0 && in_vain % kPollsInVain == 0 && !peer_is_near) yield(now, sched_yield);
}

void Progress::catch_up() {
  const BiasedLock lock(receive_mutex_);
  for (uint32_t i = 0; i < kMaxAtOnce && pass(Worker::kOther); ++i) {
  }
}

Standby::Look Progress::look() {
  Standby::Look look;
  if (!receive_mutex_.try_lock()) {
    look.found = Standby::Found::kShutOut;
    return look;
  }
  const uint32_t polls = engines_.handover.polls();
  const uint64_t fetched = arrivals_.fetched_bytes();
  const roce::Time start = now_ns();
  if (pass(Worker::kOther)) {
    look.found = Standby::Found::kWork;
  } else {
    look.took = now_ns() - start;
  }
  look.met_poller = arrivals_.fetched_bytes() != fetched && engines_.handover.polls() != polls;
  receive_mutex_.unlock();
  return look;
}

bool Progress::before_sleep(bool& awake) {
  if (!links_.any()) return true;
  if (!receive_mutex_.try_lock()) return false;
  // A full ring may have room now.
  if (look_after_links()) awake = true;
  links_.sleep();
  if (!links_.empty()) awake = true;
  receive_mutex_.unlock();
  return true;
}

bool Progress::after_sleep(bool event, bool for_packets) {
  if (!event && !(for_packets && links_.any())) return false;
  if (!receive_mutex_.try_lock()) {
    if (event) links_due_.store(true, std::memory_order_relaxed);
    return event && for_packets;
  }
  if (event) links_due_.store(true, std::memory_order_relaxed);
  look_after_links();
  links_.stay_awake();
  const bool packets = for_packets && (event || !links_.empty());
  receive_mutex_.unlock();
  return packets;
}

}  // namespace dapple::soft
