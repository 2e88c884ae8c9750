// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The answers about a device's resources: verbs objects and rdma_cm ids of all programs, which dappled knows.
#pragma once

#include "provider/preload/doors/netlink/answers.hpp"
#include "provider/preload/doors/netlink/request.hpp"
#include "provider/protocol/messages.hpp"

namespace dapple::doors {

// True for the commands that answer_resources() handles.
bool asks_for_resources(const NetlinkRequest& request);

// A request about the counters of a device's regions, as below.
int answer_region_statistic(Answers& answers, const NetlinkRequest& request, const soft::DeviceInfo& device);

// A request about the resources of one device. Puts the answer, without the end of a dump. 0, or an errno.
int answer_resources(Answers& answers, const NetlinkRequest& request, const soft::DeviceInfo& device);

}  // namespace dapple::doors
