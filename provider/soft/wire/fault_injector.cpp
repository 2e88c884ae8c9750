// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/wire/fault_injector.hpp"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <cassert>
#include <new>

#include "provider/common/clock.hpp"
#include "provider/soft/faults/disturbances.hpp"

namespace dapple::soft {

std::unique_ptr<FaultInjector> FaultInjector::create(const FaultSettings& settings, int socket, WireCounters& counters,
                                                     Problem& problem) {
  std::unique_ptr<FaultInjector> made(new (std::nothrow) FaultInjector(settings, counters));
  epoll_event event = {};
  event.events = EPOLLIN;
  if (made != nullptr) {
    made->delayed_ = DelayQueue::create();
    made->timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    made->poll_.reset(epoll_create1(EPOLL_CLOEXEC));
  }
  if (made == nullptr || made->delayed_ == nullptr || !made->timer_ || !made->poll_ ||
      epoll_ctl(made->poll_.get(), EPOLL_CTL_ADD, made->timer_.get(), &event) != 0 ||
      epoll_ctl(made->poll_.get(), EPOLL_CTL_ADD, socket, &event) != 0) {
    problem.set(errno != 0 ? errno : ENOMEM, "DAPPLE_FAULTS needs memory and file descriptors: %s", strerror(errno));
    return nullptr;
  }
  return made;
}

// A packet that is dropped has no other fault.
void FaultInjector::note(const Fate& fate) {
  if (fate.dropped) return note_disturbance(Disturbance::kDrop);
  if (fate.duplicated) note_disturbance(Disturbance::kDuplicate);
  if (fate.reordered) note_disturbance(Disturbance::kReorder);
  if (fate.damaged_bit != UINT32_MAX) note_disturbance(Disturbance::kCorrupt);
  if (fate.delay_ns != 0) note_disturbance(Disturbance::kDelay);
}

void FaultInjector::pass(DatagramOrigin& origin, std::span<std::byte> packet, DatagramSink& sink) {
  const Fate fate = source_.next(packet.size());
  note(fate);
  if (fate.dropped) {
    counters_.fault_drops.add();
    return;
  }
  if (fate.damaged_bit != UINT32_MAX) {
    assert(fate.damaged_bit / 8 < packet.size());
    packet[fate.damaged_bit / 8] ^= static_cast<std::byte>(1U << fate.damaged_bit % 8);
  }
  if (fate.delay_ns == 0) {
    sink.arrived(origin, packet);
    if (fate.duplicated) sink.arrived(origin, packet);
    return;
  }
  const auto meta = std::as_bytes(std::span<const DatagramOrigin, 1>(&origin, 1));
  const uint64_t due = now_ns() + fate.delay_ns;
  for (int copy = 0; copy < (fate.duplicated ? 2 : 1); copy++) {
    if (!delayed_->put(due, meta, packet)) counters_.fault_drops.add();
  }
  set_timer();
}

void FaultInjector::pass_due(DatagramSink& sink) {
  const uint64_t now = now_ns();
  while (const DelayQueue::Packet* packet = delayed_->take(now)) {
    assert(packet->due <= now && packet->size <= DelayQueue::kPacketSize);
    DatagramOrigin origin;
    memcpy(&origin, packet->meta, sizeof origin);
    std::byte bytes[DelayQueue::kPacketSize];
    memcpy(bytes, packet->bytes, packet->size);
    sink.arrived(origin, {bytes, packet->size});
  }
  set_timer();
}

// The timer ends when the first of all delayed packets is due.
void FaultInjector::set_timer() {
  itimerspec when = {};
  if (const uint64_t first = delayed_->next_due(); first != UINT64_MAX) {
    when.it_value.tv_sec = static_cast<time_t>(first / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(first % 1'000'000'000);
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

}  // namespace dapple::soft
