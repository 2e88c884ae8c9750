// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Waiting on an EVD: a short spin while that pays, then one arming of the CQ and one sleep on the completion channel
// and the software events together. One deadline on the monotonic clock covers both.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "ibverbs-glue/no_cancel.hpp"
#include "udapl/core/clock.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/events/evd_take.hpp"
#include "udapl/core/events/event_fd.hpp"

namespace dapple::udapl {
namespace {

constexpr int64_t kMaxSpinNs = 20'000;
constexpr int64_t kMinSpinNs = 500;
constexpr uint32_t kAcknowledgeBatch = 64;  // acknowledging takes a lock inside libibverbs

bool spinning_helps() {
  static const bool several = sysconf(_SC_NPROCESSORS_ONLN) > 1;
  return several;
}

// While an object of this class exists, a thread that posts an event also wakes the sleeper.
struct Asleep {
  explicit Asleep(std::atomic<bool>& of) : flag(of) { flag.store(true, std::memory_order_seq_cst); }
  ~Asleep() { flag.store(false, std::memory_order_seq_cst); }
  std::atomic<bool>& flag;
};

}  // namespace

// Spinning pays, or would have paid, when events arrive soon. Otherwise the next wait spins less, and in the end not at
// all.
inline void Evd::learn_to_spin(int64_t waited_ns) {
  if (waited_ns < kMaxSpinNs) {
    if (spinning_helps()) spin_ns_ = std::min(kMaxSpinNs, std::max(kMinSpinNs, spin_ns_ * 2));
  } else {
    spin_ns_ = spin_ns_ > kMinSpinNs ? spin_ns_ / 2 : 0;
  }
}

// Arms the CQ and looks for events once more. True if the thread must not sleep yet. set_waitable() wakes once, and
// only a thread whose sleeping_ it sees, so the order of these accesses matters; abort() wakes until no thread waits.
[[gnu::always_inline]] inline bool Evd::arm(const Wait& wait) {
  if (unwaitable_.load(std::memory_order_seq_cst) != wait.waitable) return true;
  std::lock_guard guard(data_mutex_);
  if (available_or_urgent() >= wait.threshold && heard(wait.signals)) return true;
  if (!cq_) return false;
  if (request_notification()) {
    break_cq();
    return true;
  }
  const bool found = completions_.empty() ? keep_polled(poll_into_empty()) : complete_batch();
  return found || cq_broken();
}

// Reads one notification, because each arming brings one. Notifications of an arming without a sleep end the next
// sleeps at once. A CQ whose device is gone sends no more notifications.
[[gnu::always_inline]] inline void Evd::take_notification() {
  const NoCancel until_counted;  // destroying the CQ waits until each notification that was read is acknowledged
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) [[likely]] {
    ++unacknowledged_;
    counters_.add_shared(EvdCounter::kDtoCallback);
  } else if (!found_nothing(errno)) {
    break_cq();
  }
  if (unacknowledged_ >= kAcknowledgeBatch) {
    ibv_ack_cq_events(cq_.get(), unacknowledged_);
    unacknowledged_ = 0;
  }
}

[[gnu::always_inline]] inline Result<> Evd::sleep(const Wait& wait) {
  if (!wake_fd_) [[unlikely]] {
    if (!channel_) return sleep_without_channel(wait);
    wake_fd_ = make_event_fd();
    if (!wake_fd_) return fail_errno(errno);
  }
  // sleeping_ must be set before the state is examined.
  const Asleep asleep{sleeping_};
  if (arm(wait)) return {};

  pollfd fds[2] = {{wake_fd_.get(), POLLIN, 0}, {channel_->fd, POLLIN, 0}};
  timespec left{};
  if (wait.deadline_ns != kNever) left = to_timespec(std::max<int64_t>(0, wait.deadline_ns - now_ns()));
  counters_.add(EvdCounter::kWaitBlocked);
  const int ready = ppoll(fds, 2, wait.deadline_ns == kNever ? nullptr : &left, nullptr);
  if (ready < 0) return errno == EINTR ? fail(Type::kInterruptedCall) : fail(Type::kInternalError);
  if (ready == 0) return fail(Type::kTimeoutExpired);
  counters_.add(EvdCounter::kWaitNotify);
  if (fds[0].revents) drain(wake_fd_);
  if (fds[1].revents) take_notification();
  return {};
}

Result<> Evd::sleep_without_channel(const Wait& wait) {
  const Asleep asleep{sleeping_};
  if (arm(wait)) return {};
  counters_.add(EvdCounter::kWaitBlocked);
  switch (wake_up_.wait(wait.deadline_ns)) {
    case 0:
      counters_.add(EvdCounter::kWaitNotify);
      return {};
    case ETIMEDOUT:
      return fail(Type::kTimeoutExpired);
    case EINTR:
      return fail(Type::kInterruptedCall);
    default:
      return fail(Type::kInternalError);
  }
}

// Delivers an event if there are enough of them. If unless_signals is set, an event that may wake a thread must also
// have arrived since signals_ had that value.
inline bool Evd::deliver_if_enough(uint32_t threshold, const uint32_t* unless_signals, const ErasedSink& to) {
  if (threshold == 1 && available_or_urgent() == 0) [[likely]] {
    const Completed completed = to.complete_batch_to(*this, to.sink);
    if (completed != Completed::kWaiting) return completed == Completed::kDelivered;
  } else if (software_.urgent()) {
    flush_rings();
  }
  do {
    if (available() >= threshold && (!unless_signals || heard(*unless_signals)))
      return to.deliver_next_to(*this, to.sink);
  } while (complete_batch());
  return false;
}

// Delivers an event if there are enough of them, whether or not they may wake a thread. The events that stay do not
// wake this thread later.
bool Evd::look_at_all(Wait& wait, const ErasedSink& sink, uint32_t& more) {
  std::lock_guard guard(data_mutex_);
  const bool delivered = deliver_if_enough(wait.threshold, nullptr, sink);
  wait.signals = signals_;
  more = available();
  return delivered;
}

Result<> Evd::wait_for_events(uint32_t timeout_us, uint32_t threshold, std::optional<uint32_t> signals,
                              const ErasedSink& sink, uint32_t& more) {
  const Leaving leaving{*this, more};
  const int64_t start = now_ns();
  Wait wait{.deadline_ns = timeout_us == kInfinite ? kNever : start + int64_t{timeout_us} * 1000,
            .threshold = threshold,
            .waitable = unwaitable_.load(std::memory_order_relaxed) & ~1U,
            .signals = signals.value_or(0)};
  if (!signals) {
    if (aborted_.load(std::memory_order_seq_cst)) return fail(Type::kAbort);
    if (look_at_all(wait, sink, more)) return {};
  }
  const int64_t spin_until = start + spin_ns_;
  for (int64_t now = start;;) {
    if (cq_broken()) return fail(Type::kInternalError);
    if (now >= wait.deadline_ns) {
      if (look_at_all(wait, sink, more)) return {};
      return fail(Type::kTimeoutExpired);
    }
    if (now >= spin_until) {
      // After a time-out there are two more looks.
      if (auto result = sleep(wait); !result && result.error().type != Type::kTimeoutExpired) return result;
    }
    // These tests come before the look, so that a thread that always finds events stops as well.
    if (aborted_.load(std::memory_order_seq_cst)) return fail(Type::kAbort);
    if (unwaitable_.load(std::memory_order_relaxed) != wait.waitable)
      return fail(Type::kInvalidState, Subtype::kEvdUnwaitable);
    now = now_ns();
    std::lock_guard guard(data_mutex_);
    const bool delivered = deliver_if_enough(threshold, &wait.signals, sink);
    more = available();
    if (delivered) {
      learn_to_spin(now - start);
      return {};
    }
  }
}

}  // namespace dapple::udapl
