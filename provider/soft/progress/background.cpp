// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Node's background thread: makes progress when no thread of the application polls.
//
// A thread that polls takes packets faster than a thread that sleeps, and both on one CPU would hinder each other. So
// if a packet has woken the background thread and is already gone, the next packet makes it check for a moment whether
// a thread polls. If so, it ignores packets for a while, longer each time. It takes over again if no thread has polled
// in between. Without traffic it sleeps.
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "provider/common/host_guards.hpp"
#include "provider/member/doors.hpp"
#include "provider/member/own_thread.hpp"
#include "provider/soft/locks/heavy_barrier.hpp"
#include "provider/soft/progress/context.hpp"
#include "provider/soft/progress/node.hpp"

namespace dapple::soft {
namespace {

using roce::Time;

constexpr Time kMicrosecond = 1000;
constexpr Time kShortestInterval = 50 * kMicrosecond;
constexpr Time kLongestInterval = 1000 * kMicrosecond;
constexpr Time kTurnsInAnInterval = 16;
constexpr Time kStuckLook = 2000 * kMicrosecond;
constexpr Time kLongestAside = 2000 * kMicrosecond;
constexpr Time kAsideGrowth = 8;  // each sleep is an eighth longer, so it lasts an eighth of the polling so far
constexpr Time kLinkRetry = 1000000 * kMicrosecond;
constexpr Time kLinkBusy = 1000 * kMicrosecond;
constexpr Time kSlice = 100 * kMicrosecond;

// True in the background thread, which looks at all work before it sleeps.
[[gnu::tls_model("initial-exec")]] thread_local constinit bool is_background = false;

// The thread runs for moments, and the program may spin on its CPU meanwhile, looking at memory. A short slice makes
// the scheduler of Linux 6.12 and later let it run at once; an older one ignores it.
void ask_for_short_slices() {
  struct {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime;
    uint64_t deadline;
    uint64_t period;
  } attributes = {};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 || attributes.policy != SCHED_OTHER)
    return;
  attributes.runtime = kSlice;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

bool Node::start_background(Problem& problem) {
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ < 0) {
    problem.set(errno, "no descriptor for the software device: %s%s", strerror(errno), descriptor_remedy(errno));
    return false;
  }
  wake_fd_ = hide_own(wake_fd_);
  const int error = start_own_thread(run_background, this);
  if (error == 0) return true;
  problem.set(error, "no thread for the software device: %s%s", strerror(error), process_remedy(error));
  close_own(wake_fd_);
  wake_fd_ = -1;
  return false;
}

void* Node::run_background(void* node) {
  prctl(PR_SET_NAME, "dapple-progress");
  // The default of 50 us would double the shorter waits.
  prctl(PR_SET_TIMERSLACK, 1);
  ask_for_short_slices();
  is_background = true;
  BriefMutex::renounce_privileges();
  static_cast<Node*>(node)->background();
}

void Node::wake() {
  if (is_background) return;
  const CancelGuard whole;
  const uint64_t one = 1;
  // EAGAIN: it is awake already.
  [[maybe_unused]] const ssize_t written = write(wake_fd_, &one, sizeof(one));
}

void Node::expect_no_polls() {
  polls_without_successor_.store(polls_.load(std::memory_order_relaxed));
  if (steps_aside_.load() && steps_aside_.exchange(false)) wake();
}

// Tells whether threads of the application have polled often in the time since polls_ had this value, and may poll
// again. A program that polls now and then while it computes would leave packets waiting.
bool Node::polled_since(uint32_t polls, Time time) {
  const uint32_t now = polls_.load(std::memory_order_relaxed);
  if (now == polls_without_successor_.load(std::memory_order_relaxed)) return false;
  return now - polls >= std::max(time / poll_interval_, Time{1});
}

// Tells whether a thread of the application polls now.
bool Node::polled_meanwhile() {
  if (poller_works_.load(std::memory_order_relaxed)) return true;
  const uint32_t polls = polls_.load(std::memory_order_relaxed);
  if (polls == polls_without_successor_.load(std::memory_order_relaxed)) return false;
  const timespec look = {0, static_cast<long>(poll_interval_)};
  nanosleep(&look, nullptr);
  if (polled_since(polls, poll_interval_)) return true;
  polls_without_successor_.store(polls, std::memory_order_relaxed);
  return false;
}

bool Node::sleep_until(Time when, bool for_packets) {
  planned_wake_.store(when);
  // A thread that set an earlier deadline before this line did not wake this one.
  when = std::min(when, for_packets ? timers_.earliest() : when);
  // Events of links that a polling thread is about to attend to would wake this thread again and again, perhaps on the
  // same CPU. Later events wait until this sleep ends.
  const bool left_to_poller = !for_packets && links_due_.load(std::memory_order_relaxed);
  pollfd waiting[4] = {
      {wake_fd_, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}, {left_to_poller ? -1 : links_.fd(), POLLIN, 0}};
  if (for_packets) {
    waiting[1].fd = wire_->receive_fd();
    if (link_retry_.load() == 0) {
      waiting[2].fd = link_->fd();
      // A thread that got no answer has closed the connection.
      if (waiting[2].fd < 0) link_retry_.store(now() + kLinkRetry);
    }
    if (const Time retry = link_retry_.load(); retry != 0) when = std::min(when, retry);
    if (links_.any()) {
      // A thread that polls takes packets of this host, too.
      if (!receive_mutex_.try_lock()) return true;
      // A full ring may have room now.
      if (attend_links()) when = 0;
      links_.sleep();
      if (!links_.empty()) when = 0;
      receive_mutex_.unlock();
    }
  }
  if (outages_ != nullptr) when = std::min(when, outages_->next_end());
  // This thread itself may have learned of a change since its last look.
  if (link_->changed() && link_retry_.load() == 0) when = 0;
  const Time start = now();
  timespec timeout = {};
  if (when > start) {
    timeout.tv_sec = static_cast<time_t>((when - start) / 1000000000);
    timeout.tv_nsec = static_cast<long>((when - start) % 1000000000);
  }
  ppoll(waiting, 4, when == roce::kNever ? nullptr : &timeout, nullptr);
  bool same_host = false;
  if ((for_packets && links_.any()) || waiting[3].revents != 0) {
    if (receive_mutex_.try_lock()) {
      if (waiting[3].revents != 0) links_due_.store(true, std::memory_order_relaxed);
      attend_links();
      links_.stay_awake();
      same_host = for_packets && (waiting[3].revents != 0 || !links_.empty());
      receive_mutex_.unlock();
    } else if (waiting[3].revents != 0) {
      links_due_.store(true, std::memory_order_relaxed);
      same_host = for_packets;
    }
  }
  if (waiting[0].revents != 0) {
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(wake_fd_, &count, sizeof(count));
  }
  if (waiting[2].revents != 0) look_after_link();
  if (outages_ != nullptr && outages_->end_before(now())) link_->note_change();
  if (link_->changed() && link_retry_.load() == 0) attend_link();
  return waiting[1].revents != 0 || same_host;
}

void Node::look_after_link() {
  const DaemonLink::State state = link_->look();
  if (state == DaemonLink::State::kGone) return attend_link();
  link_retry_.store(state == DaemonLink::State::kBusy ? now() + kLinkBusy : 0);
}

// Starts a thread that asks dappled. dappled may not answer for seconds, and packets must not wait for it.
void Node::attend_link() {
  link_retry_.store(roce::kNever);
  // If there can be no such thread, packets wait.
  if (start_own_thread(run_link, this) != 0) run_link(this);
}

// If dappled is gone, the next one must learn this process' slot.
void* Node::run_link(void* argument) {
  if (!is_background) prctl(PR_SET_NAME, "dapple-link");
  const InsidePlugin inside;
  Node& node = *static_cast<Node*>(argument);
  Problem problem;
  const bool connected = node.link_->check(problem);
  if (connected && node.link_->changed()) node.tell_changes();
  node.link_retry_.store(connected ? 0 : now() + kLinkRetry);
  node.wake();
  return nullptr;
}

bool Node::add(Context& context) {
  const std::lock_guard lock(contexts_mutex_);
  DeviceObjects* objects = nullptr;
  for (Context* other = first_context_; other != nullptr && objects == nullptr; other = other->next) {
    if (other->node_guid == context.node_guid) objects = &other->objects.device();
  }
  if (objects == nullptr) objects = new (std::nothrow) DeviceObjects;
  if (objects == nullptr) return false;
  context.objects.join(*objects);
  context.next = first_context_;
  first_context_ = &context;
  return true;
}

void Node::remove(Context& context) {
  const std::lock_guard lock(contexts_mutex_);
  for (Context** at = &first_context_; *at != nullptr; at = &(*at)->next) {
    if (*at != &context) continue;
    *at = context.next;
    if (DeviceObjects& objects = context.objects.leave(); objects.contexts == 0) delete &objects;
    return;
  }
}

void Node::tell_changes() {
  link_->take_changed();
  const std::lock_guard lock(contexts_mutex_);
  for (Context* context = first_context_; context != nullptr; context = context->next) context->tell_changes();
}

void Node::look_for_changes() {
  if (link_->changed()) wake();
}

// A program on an emulated or crowded machine cannot poll as often as on a fast one. What a turn in vain takes here
// tells how often it can. A turn may have been interrupted, so a shorter one counts at once, and a longer one in part.
void Node::learn_poll_interval(Time took) {
  turn_in_vain_ = std::min(took, turn_in_vain_ + turn_in_vain_ / 2 + kMicrosecond);
  poll_interval_ = std::clamp(kTurnsInAnInterval * turn_in_vain_, kShortestInterval, kLongestInterval);
}

// Sleeps and ignores packets while a thread of the application polls often, longer each time. True if it has slept.
bool Node::step_aside(Time& aside) {
  for (bool has_slept = false;; has_slept = true) {
    const uint32_t polls = polls_.load(std::memory_order_relaxed);
    let_others_work();
    // expect_no_polls() sees that this thread steps aside, or this thread sees its mark.
    if (polls_without_successor_.load() == polls) return has_slept;
    const Time start = now();
    sleep_until(start + aside, false);
    aside = std::min(aside + aside / kAsideGrowth, kLongestAside);
    if (!polled_since(polls, now() - start)) return true;
  }
}

void Node::let_others_work() {
  was_aside_ = true;
  steps_aside_.store(true);
}

// A polling thread that holds an acknowledgement back sees that this thread no longer steps aside, or this thread sees
// the acknowledgement.
void Node::take_over() {
  steps_aside_.store(false);
  if (std::exchange(was_aside_, false) && have_heavy_barriers()) heavy_barrier();
}

void Node::background() {
  const InsidePlugin inside;
  learn_poll_interval(0);
  Time aside = poll_interval_;
  bool rival = false, shut_out = false;
  for (;;) {
    Time when = timers_.earliest();
    // A polling thread may have held an acknowledgement back just after this thread took over again.
    if (held_count_.load() != 0) when = std::min(when, now() + poll_interval_);
    // There is no memory for packets, or a peer's ring is full. The peer reports when the ring has room.
    if (any_ready_.load()) when = std::min(when, links_.wait_for_room() ? now() + kStuckLook : 0);
    const bool packets = sleep_until(when, true);
    if (const Time retry = link_retry_.load(); retry != 0 && now() >= retry) look_after_link();
    const bool has_slept = rival && polled_meanwhile() && step_aside(aside);
    // The lock's owner works for long without a poll, and may need this CPU.
    if (shut_out && !has_slept) {
      let_others_work();
      sleep_until(now() + poll_interval_, false);
    }
    take_over();
    bool found = false, gives_way = false;
    for (bool any = true; any && !gives_way;) {
      shut_out = !receive_mutex_.try_lock();
      if (shut_out) break;
      const uint32_t polls = polls_.load(std::memory_order_relaxed);
      const uint64_t fetched = fetched_bytes_;
      const Time start = now();
      any = work(Worker::kOther);
      if (!any) learn_poll_interval(now() - start);
      // Another thread has polled in vain meanwhile, perhaps on this CPU.
      gives_way = fetched_bytes_ != fetched && polls_.load(std::memory_order_relaxed) != polls;
      receive_mutex_.unlock();
      found |= any;
    }
    if (found) aside = poll_interval_;
    // Another thread has taken the packets.
    rival = (packets && !found) || gives_way;
  }
}

}  // namespace dapple::soft
