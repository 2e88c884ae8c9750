// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/scheduling/standby.hpp"

#include <algorithm>
#include <cassert>

namespace dapple::soft {
namespace {

using Time = Standby::Time;

constexpr Time kMicrosecond = 1000;
constexpr Time kShortestInterval = 50 * kMicrosecond;
constexpr Time kLongestInterval = 1000 * kMicrosecond;
constexpr Time kLooksInAnInterval = 16;
constexpr Time kStuckLook = 2000 * kMicrosecond;
constexpr Time kLongestAside = 2000 * kMicrosecond;
// A program that has asked for an event polls once more before it waits: its queue of receives, and that of its Sends.
constexpr uint32_t kPollsBeforeWait = 2;
// The most polls while a thread looks at both marks.
constexpr uint32_t kPollsMeanwhile = 1 << 16;
constexpr Time kAsideGrowth = 8;  // each sleep is an eighth longer, so it lasts an eighth of the polling so far

}  // namespace

Standby::Step Standby::enter(Act act, Time until) {
  act_ = act;
  return {act, until};
}

Time Standby::sleep_end(const Reasons& reasons, Time now) const {
  assert(act_ == Act::kSleep);
  Time end = reasons.deadline;
  // A polling thread may have held an acknowledgement back just after this thread took over again.
  if (reasons.holds) end = std::min(end, now + poll_interval_);
  // There is no memory for packets, or a peer's ring is full. The peer reports when the ring has room.
  if (reasons.ready) end = std::min(end, reasons.rings_full ? now + kStuckLook : 0);
  return end;
}

Standby::Step Standby::slept(bool packets, const Marks& marks, Time now) {
  assert(act_ == Act::kSleep);
  packets_ = packets;
  has_slept_ = false;
  if (!rival_) return end_of_rivalry(false);
  if (marks.poller_works) return enter(Act::kMarkAside);
  if (!expects_polls(marks)) return end_of_rivalry(false);
  polls_ = marks.polls;
  return enter(Act::kWatch, now + poll_interval_);
}

Standby::Step Standby::watched(const Marks& marks) {
  assert(act_ == Act::kWatch);
  if (has_polled(marks, polls_, poll_interval_)) return enter(Act::kMarkAside);
  ended_at_ = polls_;
  return end_of_rivalry(false);
}

Standby::Step Standby::marked(const Marks& marks, Time now) {
  assert(act_ == Act::kMarkAside);
  if (naps_) return enter(Act::kStayAside, now + poll_interval_);
  // A program that is about to wait sees that this thread steps aside, or this thread sees its mark.
  if (awaits_event(marks)) return end_of_rivalry(has_slept_);
  polls_ = marks.polls;
  began_ = now;
  return enter(Act::kStayAside, now + aside_);
}

Standby::Step Standby::stayed_aside(const Marks& marks, Time now) {
  assert(act_ == Act::kStayAside);
  if (naps_) return enter(Act::kTakeOver);
  has_slept_ = true;
  aside_ = std::min(aside_ + aside_ / kAsideGrowth, kLongestAside);
  if (has_polled(marks, polls_, now - began_)) return enter(Act::kMarkAside);
  return end_of_rivalry(true);
}

// If the lock's owner works for long without a poll, it may need this CPU.
Standby::Step Standby::end_of_rivalry(bool has_slept) {
  naps_ = shut_out_ && !has_slept;
  return enter(naps_ ? Act::kMarkAside : Act::kTakeOver);
}

Standby::Step Standby::took_over() {
  assert(act_ == Act::kTakeOver);
  naps_ = false;
  found_ = false;
  return enter(Act::kLook);
}

Standby::Step Standby::looked(const Look& look) {
  assert(act_ == Act::kLook);
  shut_out_ = look.found == Found::kShutOut;
  if (shut_out_) return end_of_looks(false);
  if (look.found == Found::kNothing) learn(look.took);
  found_ = found_ || look.found == Found::kWork;
  if (look.found == Found::kWork && !look.met_poller) return enter(Act::kLook);
  return end_of_looks(look.met_poller);
}

Standby::Step Standby::end_of_looks(bool met_poller) {
  if (found_) aside_ = poll_interval_;
  rival_ = (packets_ && !found_) || met_poller;
  return enter(Act::kSleep);
}

// A program on an emulated or crowded machine cannot poll as often as on a fast one. The time of a look in vain here
// tells how often it can. A look may have been interrupted, so a shorter one counts at once, and a longer one in part.
void Standby::learn(Time took) {
  look_in_vain_ = std::min(took, look_in_vain_ + look_in_vain_ / 2 + kMicrosecond);
  poll_interval_ = std::clamp(kLooksInAnInterval * look_in_vain_, kShortestInterval, kLongestInterval);
}

// The program may have asked for an event after this thread looked at the polls.
bool Standby::awaits_event(const Marks& marks) {
  return marks.polls - marks.last_poll + kPollsMeanwhile <= kPollsBeforeWait + kPollsMeanwhile;
}

bool Standby::expects_polls(const Marks& marks) const {
  return !awaits_event(marks) && marks.polls != ended_at_;
}

// Tells whether threads of the program have polled often in the time since there were `polls`, and may poll again. A
// program that polls now and then while it computes would leave packets waiting.
bool Standby::has_polled(const Marks& marks, uint32_t polls, Time time) const {
  return expects_polls(marks) && marks.polls - polls >= std::max(time / poll_interval_, Time{1});
}

}  // namespace dapple::soft
