// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Waiting on an EVD: a short spin while that pays, then one arm of the CQ and one sleep on the completion channel and
// the software events together. One deadline on the monotonic clock covers all of it.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "udapl/core/clock.hpp"
#include "udapl/core/evd.hpp"

namespace dapple::dat {
namespace {

constexpr int64_t kMaxSpinNs = 20'000;
constexpr int64_t kMinSpinNs = 500;
constexpr uint32_t kAcknowledgeBatch = 64;  // acknowledging takes a lock inside libibverbs

bool spinning_helps() {
  static const bool several = sysconf(_SC_NPROCESSORS_ONLN) > 1;
  return several;
}

}  // namespace

Result<> Evd::wait(uint32_t timeout_us, uint32_t threshold, Event& out, uint32_t& more) {
  more = 0;
  if (threshold < 1 || threshold > qlen()) return fail(Type::kInvalidParameter, Subtype::kArg3);
  if (!waitable()) return fail(Type::kInvalidState, Subtype::kEvdUnwaitable);
  Waiter nobody = Waiter::kNone;
  if (!waiter_.compare_exchange_strong(nobody, Waiter::kWaiting)) {
    return fail(Type::kInvalidState, Subtype::kEvdWaiter);
  }
  counters_.add(EvdCounter::kWait);
  auto result = wait_for_events(timeout_us, threshold, out, more);
  if (cno_.load(std::memory_order_seq_cst)) [[unlikely]] {
    // What comes from now on is the CNO's to tell.
    waiter_.store(Waiter::kLeaving, std::memory_order_seq_cst);
    resume_cno(more);
  }
  waiter_.store(Waiter::kNone, std::memory_order_release);
  return result;
}

Result<> Evd::wait_for_events(uint32_t timeout_us, uint32_t threshold, Event& out, uint32_t& more) {
  const int64_t start = now_ns();
  const int64_t deadline = timeout_us == kInfinite ? kNever : start + int64_t{timeout_us} * 1000;
  int64_t spin_until = start + (spinning_helps() ? std::max(spin_ns_, kMinSpinNs) : 0);
  bool slept = false;
  bool looked = false;     // what is there when the call begins counts, whether it may wake somebody or not
  bool last_look = false;  // and so does what is there when time is up
  uint32_t signals = 0;
  for (;;) {
    // First, so that a thread that always finds events stops as well.
    if (aborted_.load(std::memory_order_seq_cst)) return fail(Type::kAbort);
    {
      std::lock_guard guard(data_mutex_);
      if (!looked) signals = signals_;
      const auto satisfied = [&] { return available() >= threshold && (!looked || last_look || heard(signals)); };
      while (!satisfied() && refill()) {
      }
      if (satisfied() && pop(out)) {
        more = available();
        // Spinning paid when it saw the event; otherwise try less of it next time.
        spin_ns_ = slept ? spin_ns_ / 2 : std::min(kMaxSpinNs, std::max(kMinSpinNs, spin_ns_ * 2));
        return {};
      }
      more = available();
      if (cq_broken_) return fail(Type::kInternalError);
      looked = true;
    }
    if (!waitable()) return fail(Type::kInvalidState, Subtype::kEvdUnwaitable);
    const int64_t now = now_ns();
    if (now >= deadline) {
      if (std::exchange(last_look, true)) return fail(Type::kTimeoutExpired);
      continue;
    }
    if (now < spin_until) continue;
    slept = true;
    if (auto result = sleep(deadline, threshold, signals); !result) {
      if (result.error().type == Type::kTimeoutExpired) continue;  // one last look
      return result;
    }
  }
}

// Arms the CQ and looks once more. True when there is something to do before sleeping.
bool Evd::arm(uint32_t threshold, uint32_t signals) {
  std::lock_guard guard(data_mutex_);
  if (available() >= threshold && heard(signals)) return true;
  if (!cq_) return false;
  const uint32_t before = pending_head_;
  if (request_notification()) {
    cq_broken_ = true;
    return true;
  }
  refill();
  return pending_head_ != before || cq_broken_;
}

Result<> Evd::sleep(int64_t deadline_ns, uint32_t threshold, uint32_t signals) {
  // From here on whoever posts an event also writes to wake_fd_, so what matters is looked at after this line.
  sleeping_.store(true, std::memory_order_seq_cst);
  struct Awake {
    std::atomic<bool>& sleeping;
    ~Awake() { sleeping.store(false, std::memory_order_seq_cst); }
  } awake{sleeping_};
  if (arm(threshold, signals)) return {};
  if (aborted_.load(std::memory_order_seq_cst) || !waitable()) return {};

  pollfd fds[2] = {{wake_fd_.get(), POLLIN, 0}, {channel_ ? channel_->fd : -1, POLLIN, 0}};
  timespec left{};
  if (deadline_ns != kNever) left = to_timespec(std::max<int64_t>(0, deadline_ns - now_ns()));
  counters_.add(EvdCounter::kWaitBlocked);
  const int ready = ppoll(fds, 2, deadline_ns == kNever ? nullptr : &left, nullptr);
  if (ready < 0) return errno == EINTR ? fail(Type::kInterruptedCall) : fail(Type::kInternalError);
  if (ready == 0) return fail(Type::kTimeoutExpired);
  counters_.add(EvdCounter::kWaitNotify);
  if (fds[0].revents) {
    uint64_t count;
    [[maybe_unused]] ssize_t drained = read(wake_fd_.get(), &count, sizeof count);
  }
  if (fds[1].revents) {
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    while (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) {
      ++unacknowledged_;
      counters_.add_shared(EvdCounter::kDtoCallback);
    }
    if (unacknowledged_ >= kAcknowledgeBatch) {
      ibv_ack_cq_events(cq_.get(), unacknowledged_);
      unacknowledged_ = 0;
    }
  }
  return {};
}

}  // namespace dapple::dat
