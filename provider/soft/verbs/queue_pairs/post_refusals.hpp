// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The reasons of refused posts. Each function returns the errno of the post.
#pragma once

#include "provider/soft/objects/objects.hpp"
#include "roce/core/queue_pair.hpp"
#include "roce/host/request.hpp"

namespace dapple::soft {

// The engine has answered `error`, which is not kNone. The caller has the queue pair's lock.
int refuse_send(Qp& qp, const roce::SendRequest& request, roce::PostError error);
// num_sge is no number of segments that any device takes.
int refuse_segments(int count);
// ReceiveQueue::post() has answered `error`.
int refuse_receive(const ReceiveQueue& queue, size_t segments, int error);
// False for the ends of XRC: shared receive queues have the receives.
inline bool takes_receives(const Qp& qp) {
  return qp.init.qp_type != IBV_QPT_XRC_SEND && qp.init.qp_type != IBV_QPT_XRC_RECV;
}
// The queue pair takes no receives.
int refuse_receives(const Qp& qp);
// IBV_WR_BIND_MW of a window that is not of type 2 and of this device, or on datagrams.
int refuse_bind(const Qp& qp, const ibv_mw* window);

}  // namespace dapple::soft
