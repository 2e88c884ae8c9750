// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The answers with numbers: how many resources a device has, and what its port has counted.
#pragma once

#include "provider/preload/doors/netlink/answers.hpp"
#include "provider/preload/doors/netlink/request.hpp"
#include "provider/protocol/messages.hpp"

namespace dapple::doors {

// The numbers of a device's resources, as one message. 0, or an errno.
int put_resource_counts(Answers& answers, const NetlinkRequest& request, uint16_t flags,
                        const soft::DeviceInfo& device);

// A request for a statistic of one device. Puts the answer, without the end of a dump. 0, or an errno.
int answer_statistic(Answers& answers, const NetlinkRequest& request, const soft::DeviceInfo& device);

// A question which counters a port has, and which of them are on. 0, or an errno.
int answer_statistic_mode(Answers& answers, const NetlinkRequest& request, const soft::DeviceInfo& device);

}  // namespace dapple::doors
