// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Parts of several answers over RDMA netlink.
#pragma once

#include <errno.h>
#include <rdma/rdma_netlink.h>

#include "provider/common/host_guards.hpp"
#include "provider/preload/doors/link.hpp"
#include "provider/preload/doors/netlink/answers.hpp"

namespace dapple::doors {

inline void put_handle(Answers& answers, const soft::DeviceInfo& device) {
  answers.put_u32(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
  answers.put_text(RDMA_NLDEV_ATTR_DEV_NAME, device.name);
}

// An entry of RDMA_NLDEV_ATTR_STAT_HWCOUNTERS.
inline void put_counter(Answers& answers, const char* name, uint64_t value) {
  const size_t entry = answers.begin_nest(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
  answers.put_text(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME, name);
  answers.put_u64(RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, value);
  answers.end_nest(entry);
}

// Calls question(link, problem), which asks dappled. 0, or an errno.
template <typename Ask>
int ask(Ask question) {
  const CancelGuard whole;
  const SignalGuard quiet;
  soft::Problem problem;
  soft::DaemonLink* link = connection(problem);
  if (link != nullptr && question(*link, problem)) return 0;
  complain(problem);
  return problem.error != 0 ? problem.error : EIO;
}

}  // namespace dapple::doors
