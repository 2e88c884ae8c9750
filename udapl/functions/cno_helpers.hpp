// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The common parts of the functions that make a CNO, and of those that take a notification.
#pragma once

#include "udapl/core/events/cno.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/functions/convert.hpp"

namespace dapple::udapl::functions {

inline DAT_RETURN create_cno(Ia& ia, const WaitAgent& agent, bool has_fd, DAT_CNO_HANDLE* cno_handle) {
  return controlled([&] { return store(Cno::create(ia, agent, has_fd), cno_handle); });
}

inline DAT_RETURN give_evd(const Result<Evd*>& found, DAT_EVD_HANDLE* evd_handle) {
  *evd_handle = found ? *found : DAT_HANDLE_NULL;
  return found ? kSuccess : to_dat(found.error());
}

}  // namespace dapple::udapl::functions
