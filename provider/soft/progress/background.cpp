// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/progress/background.hpp"

#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "provider/common/clock.hpp"
#include "provider/soft/locks/biased_mutex.hpp"
#include "provider/soft/scheduling/turn_clock.hpp"
#include "provider/system/doors.hpp"
#include "provider/system/own_thread.hpp"

namespace dapple::soft {
namespace {

using roce::Time;

constexpr Time kSecond = 1'000'000'000;
constexpr Time kSlice = 100'000;

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

timespec as_timespec(Time time) {
  return {static_cast<time_t>(time / kSecond), static_cast<long>(time % kSecond)};
}

}  // namespace

bool Background::start(Problem& problem) {
  const int error = start_own_thread(run, this);
  if (error != 0) problem.set(error, "no thread for the software device: %s%s", strerror(error), process_remedy(error));
  return error == 0;
}

void* Background::run(void* background) {
  prctl(PR_SET_NAME, "dapple-progress");
  // The default of 50 us would double the shorter waits.
  prctl(PR_SET_TIMERSLACK, 1);
  ask_for_short_slices();
  Wakeup::this_is_background();
  BiasedMutex::renounce_privileges();
  static_cast<Background*>(background)->work();
}

void Background::work() {
  const InsidePlugin inside;
  Standby::Step step;
  for (;;) step = carry_out(step);
}

Standby::Step Background::carry_out(const Standby::Step& step) {
  if (parts_.xrc.has_unused()) parts_.xrc.end_unused();
  switch (step.act) {
    case Standby::Act::kSleep:
      return sleep();
    case Standby::Act::kWatch: {
      const timespec time = as_timespec(standby_.poll_interval());
      nanosleep(&time, nullptr);
      return standby_.watched(handover_.marks());
    }
    case Standby::Act::kMarkAside:
      return standby_.marked(handover_.step_aside(), now_ns());
    case Standby::Act::kStayAside:
      sleep_until(step.until, false);
      return standby_.stayed_aside(handover_.marks(), now_ns());
    case Standby::Act::kTakeOver:
      handover_.take_over();
      return standby_.took_over();
    case Standby::Act::kLook:
      break;
  }
  // A thread that always finds work never sleeps.
  if (engines_.held_events.earliest() != roce::kNever) engines_.raise_held_events(now_ns());
  return standby_.looked(parts_.progress.look());
}

Standby::Step Background::sleep() {
  Standby::Reasons reasons;
  reasons.deadline = engines_.timers.earliest();
  reasons.holds = engines_.held.any();
  reasons.ready = engines_.ready.any();
  if (reasons.ready) reasons.rings_full = parts_.links.wait_for_room();
  const bool packets = sleep_until(standby_.sleep_end(reasons, now_ns()), true);
  const Time now = now_ns();
  if (now >= parts_.watch.next_look()) parts_.watch.look();
  return standby_.slept(packets, handover_.marks(), now);
}

bool Background::sleep_until(Time when, bool for_packets) {
  handover_.plan_wake(when);
  // A thread that set an earlier deadline before this line did not wake this one.
  if (for_packets) when = std::min(when, engines_.timers.earliest());
  when = std::min(when, engines_.held_events.earliest());
  // Events of links that a polling thread is about to attend to would wake this thread again and again, perhaps on the
  // same CPU. Later events wait until this sleep ends.
  const bool left_to_poller = !for_packets && parts_.progress.leaves_links_to_poller();
  enum { kWakeup, kWire, kDaemon, kLinks, kDescriptors };
  pollfd waiting[kDescriptors] = {{parts_.wakeup.fd(), POLLIN, 0},
                                  {-1, POLLIN, 0},
                                  {-1, POLLIN, 0},
                                  {left_to_poller ? -1 : parts_.links.fd(), POLLIN, 0}};
  if (for_packets) {
    waiting[kWire].fd = parts_.progress.wire().receive_fd();
    waiting[kDaemon].fd = parts_.watch.fd_to_poll();
    when = std::min(when, parts_.watch.next_look());
    bool awake = false;
    if (!parts_.progress.before_sleep(awake)) return true;
    if (awake) when = 0;
  }
  if (parts_.outages != nullptr) when = std::min(when, parts_.outages->next_end());
  // This thread itself may have learned of a change since its last look.
  if (parts_.watch.is_due()) when = 0;
  const Time start = now_ns();
  const timespec timeout = as_timespec(when > start ? when - start : 0);
  ppoll(waiting, kDescriptors, when == roce::kNever ? nullptr : &timeout, nullptr);
  if (engines_.held_events.earliest() != roce::kNever) engines_.raise_held_events(now_ns());
  const bool same_host = parts_.progress.after_sleep(waiting[kLinks].revents != 0, for_packets);
  if (waiting[kWakeup].revents != 0) parts_.wakeup.woken();
  if (waiting[kDaemon].revents != 0) parts_.watch.look();
  if (parts_.outages != nullptr && parts_.outages->end_before(now_ns())) parts_.watch.link().note_change();
  if (parts_.watch.is_due()) parts_.watch.ask();
  return waiting[kWire].revents != 0 || same_host;
}

}  // namespace dapple::soft
