// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <signal.h>

#include <cerrno>

namespace dapple::verbs {

// True if a handler of the program lacks SA_RESTART, so that its signal ends a wait. Handlers of faults do not count: a
// thread that waits has no fault.
inline bool a_signal_may_end_waits() noexcept {
  for (int number = 1; number < NSIG; ++number) {
    const bool is_fault = number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE ||
                          number == SIGTRAP || number == SIGSYS;
    if (is_fault) continue;
    struct sigaction action;
    if (sigaction(number, nullptr, &action) || action.sa_flags & SA_RESTART) continue;
    if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) return true;
  }
  return false;
}

// Sleeps until the channel has an event, unless its descriptor is non-blocking. False with errno set on failure; EINTR
// if a signal ended the wait. A thread that is cancelled here has taken nothing. rdma_get_cm_event() has cancellation
// points after it took the event: a thread that is cancelled there loses the event, and destroying the id never ends.
// So call this first, and then take the event without cancellation.
inline bool wait_for_event(const rdma_event_channel& channel) noexcept {
  const int timeout_ms = fcntl(channel.fd, F_GETFL) & O_NONBLOCK ? 0 : -1;
  pollfd watched = {channel.fd, POLLIN, 0};
  while (poll(&watched, 1, timeout_ms) < 0) {
    // Every handler ends poll(). rdma_get_cm_event() would go on after one with SA_RESTART.
    if (errno != EINTR || a_signal_may_end_waits()) return false;
  }
  return true;
}

}  // namespace dapple::verbs
