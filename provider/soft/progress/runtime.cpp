// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/runtime.hpp"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <new>
#include <utility>

#include "provider/common/clock.hpp"
#include "provider/common/host_guards.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/locks/users_in_progress.hpp"
#include "provider/soft/objects/fork_generation.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/scheduling/turn_clock.hpp"
#include "provider/soft/transport/qp_publication.hpp"
#include "provider/soft/wire/udp_wire.hpp"
#include "provider/soft/xrc/xrc_qp.hpp"
#include "provider/system/random.hpp"

namespace dapple::soft {
namespace {

constexpr roce::Time kTimeToLeave = 500'000'000;
constexpr timespec kNap = {0, 100'000};

// Never destroyed: the background thread lives until the process ends.
constinit Runtime* the_runtime = nullptr;
constinit bool handlers_registered = false;
constinit Mutex runtime_mutex{LockRank::kRuntime};

[[gnu::destructor]] void leave() {
  if (the_runtime != nullptr) the_runtime->leave();
}

}  // namespace

Runtime::Runtime(std::unique_ptr<DaemonLink> link, std::unique_ptr<Outages> outages, std::unique_ptr<Wire> wire,
                 const Slot& slot)
    : planned_(std::move(outages), watch_, wakeup_),
      wire_(std::move(wire)),
      qps_(slot.number, random_number(RandomUse::kQueuePairNumbers)),
      xrc_(slot.number, first_qpn(slot.number) >> kLargeSlotBits << kLargeSlotBits,
           random_number(RandomUse::kQueuePairNumbers), xrc_events_),
      multicast_(*wire_),
      gid_uses_(*slot.gid_uses, ForkGeneration::counter()),
      devices_(*slot.devices),
      resource_rows_(slot.counters_file, slot.number),
      resources_(*slot.resources, resource_rows_, ForkGeneration::counter()),
      watch_(std::move(link), wakeup_),
      progress_(qps_, multicast_, *wire_, transports_, *slot.counters, wakeup_),
      frames_(*wire_, progress_.frame_taker()),
      background_({progress_, wakeup_, watch_, transports_.links(), planned_.outages(), xrc_}) {
  engines().plan(planned_);
  xrc_events_.use(engines(), wakeup_);
}

Runtime* Runtime::get(Problem& problem) {
  const CancelGuard whole;
  const std::lock_guard lock(runtime_mutex);
  if (the_runtime == nullptr) {
    the_runtime = make(problem);
    if (the_runtime != nullptr && !std::exchange(handlers_registered, true))
      pthread_atfork(fork_prepare, fork_parent, fork_child);
  }
  return the_runtime;
}

Runtime* Runtime::make(Problem& problem) {
  prepare_heavy_barriers();
  std::unique_ptr<DaemonLink> link = DaemonLink::open(problem);
  Slot slot;
  if (link == nullptr || !link->slot(slot, problem)) return nullptr;
  std::unique_ptr<Outages> outages;
  std::unique_ptr<Wire> wire = UdpWire::open(slot, problem);
  if (wire == nullptr || !PlannedFaults::prepare(wire, outages, problem)) return nullptr;
  const bool instrumented = wire->instrumented();
  std::unique_ptr<Runtime> made(new (std::nothrow) Runtime(std::move(link), std::move(outages), std::move(wire), slot));
  if (made == nullptr || !made->qps_.has_memory()) {
    problem.set(ENOMEM, "no memory for the software device");
    return nullptr;
  }
  if (!made->transports_.open(slot, instrumented, problem)) return nullptr;
  if (!made->wakeup_.open(problem) || !made->background_.start(problem)) return nullptr;
  return made.release();
}

void Runtime::fork_prepare() {
  lock_revival();
  runtime_mutex.lock();
  if (the_runtime != nullptr) {
    the_runtime->transports_.fork_prepare();
    the_runtime->watch_.link().fork_prepare();
  }
}

void Runtime::fork_parent() {
  if (the_runtime != nullptr) {
    the_runtime->watch_.link().fork_parent();
    the_runtime->transports_.fork_parent();
  }
  runtime_mutex.unlock();
  unlock_revival();
}

// The parent's runtime stays in memory in the state of the fork; no code uses it again.
void Runtime::fork_child() {
  ForkGeneration::begin_next();
  UsersInProgress::forget_others();
  if (the_runtime != nullptr) {
    the_runtime->watch_.link().fork_child();
    the_runtime->progress_.wire().close_in_child();
    the_runtime->transports_.fork_child();
    the_runtime->wakeup_.close();
    the_runtime = nullptr;
  }
  runtime_mutex.unlock();
  unlock_revival();
}

int Runtime::add(Qp& qp) {
  if (qp.init.qp_type == IBV_QPT_UD) wire_->expect_datagrams();
  if (!engines().timers.make_room()) return ENOMEM;
  if (qps_.add(qp) != 0) return 0;
  engines().timers.remove(qp);
  return ENOMEM;
}

void Runtime::remove(Qp& qp) {
  if (qp.xrc != nullptr) xrc_.end(qp);
  revoke_qp(qp, transports_.publication());
  {
    const BiasedLock lock(qp.mutex);
    qp.scheduling.ends = true;
  }
  if (engines().held.any()) catch_up();
  engines().timers.remove(qp);
  engines().ready.forget(qp);
  qps_.remove(qp, progress_.stop_receiving());
  transports_.leave({qp.transport.ring, qp.transport.row});
  qp.address.source = {};
  if (qp.raw != nullptr) with_frames([&](FrameWire& frames) { return frames.leave(qp); });
  if (qp.xrc != nullptr) qp.xrc->receives.leave();
}

int Runtime::open_frames() {
  const auto stopped = progress_.stop_receiving();
  if (frames_.is_open()) return 0;
  if (const int error = frames_.open(); error != 0) return error;
  progress_.receive_from(frames_);
  // The background thread sleeps until the wire before this one has packets.
  wakeup_.wake();
  return 0;
}

void Runtime::remove_all(Context& context) {
  with_frames([&](FrameWire& frames) { return frames.forget(context); });
  while (Qp* qp = qps_.any_of(context)) {
    multicast_.detach_from_all(*qp);
    remove(*qp);
  }
}

void Runtime::remove_xrc(const Context& context) {
  while (Qp* qp = xrc_.forget(context)) {
    if (qp->context != &context) {
      xrc_events_.unused(*qp);
      continue;
    }
    // The program may still refer to it.
    remove(*qp);
    xrc_.ended(*qp->xrc);
  }
}

void Runtime::expect_no_polls() {
  if (engines().handover.expect_no_polls()) wakeup_.wake();
}

void Runtime::leave() {
  if (!engines().held.any()) return;
  const CancelGuard whole;
  // A handler of a signal may have called exit() within a verb, and this thread has the verb's locks. So the background
  // thread sends, and if it needs one of these locks, the acknowledgements stay unsent.
  expect_no_polls();
  const roce::Time end = now_ns() + kTimeToLeave;
  while (engines().held.any() && now_ns() < end) nanosleep(&kNap, nullptr);
}

}  // namespace dapple::soft
