// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <memory>

#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/events/notifier.hpp"
#include "udapl/core/object.hpp"

namespace dapple::udapl {

class Evd;

// Consumer notification object: tells waiters, an agent or a descriptor that one of several EVDs has events.
class Cno : public Object {
 public:
  static constexpr Kind kKind = Kind::kCno;

  // has_fd: the CNO has a descriptor for the consumer to poll. The caller holds the control mutex. Throws
  // std::bad_alloc.
  static Result<Cno*> create(Ia& ia, const WaitAgent& agent, bool has_fd);
  // INVALID_STATE while EVDs use the CNO. Releases the waiters. The caller holds the control mutex; it joins the agents
  // after it has released the mutex, because an agent may be inside any call. tell_agent: calls the agent once more,
  // with a null EVD.
  static Result<> free(Cno& cno, bool tell_agent, Notifier::Threads& agents);

  bool has_fd() const { return has_fd_; }
  // A waiter holds a copy, which keeps the notifier alive when the IA is closed during the wait.
  std::shared_ptr<Notifier> notifier() const { return notifier_; }

 private:
  friend class Arena<Cno>;
  Cno(Ia& ia, std::shared_ptr<Notifier> notifier, bool has_fd);

  const std::shared_ptr<Notifier> notifier_;
  const bool has_fd_;
};

}  // namespace dapple::udapl
