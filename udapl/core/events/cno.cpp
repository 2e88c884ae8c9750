// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/events/cno.hpp"

#include <utility>

#include "udapl/core/ia/ia.hpp"

namespace dapple::udapl {

Cno::Cno(Ia& ia, std::shared_ptr<Notifier> notifier, bool has_fd)
    : Object(ia.tables().live, kKind, &ia), notifier_(std::move(notifier)), has_fd_(has_fd) {}

Result<Cno*> Cno::create(Ia& ia, const WaitAgent& agent, bool has_fd) {
  auto notifier = Notifier::create();
  if (!notifier) return tl::unexpected(notifier.error());
  Cno* cno = arena<Cno>().create(ia, *notifier, has_fd);
  ia.adopt(*cno);
  try {
    const auto started = agent.function ? (*notifier)->set_agent(agent) : Result<>();
    if (started) return cno;
    ia.destroy(*cno);
    return tl::unexpected(started.error());
  } catch (...) {
    ia.destroy(*cno);
    throw;
  }
}

Result<> Cno::free(Cno& cno, bool tell_agent, Notifier::Threads& agents) {
  if (cno.in_use()) return fail(Type::kInvalidState, Subtype::kCnoInUse);
  cno.notifier_->close(tell_agent, agents);
  cno.ia().destroy(cno);
  return {};
}

}  // namespace dapple::udapl
