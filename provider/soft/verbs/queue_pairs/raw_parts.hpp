// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The parts that only raw packet queue pairs have.
#pragma once

#include "provider/soft/objects/objects.hpp"
#include "provider/soft/verbs/queue_pairs/qp_checks.hpp"
#include "provider/system/owned_fd.hpp"

namespace dapple::soft::verbs {

// 0, or the errno of a refusal: the device's identity may have no raw packets.
int check_raw(const ibv_context* context);
// A socket for frames. 0, or the errno of a refusal: the process may lack CAP_NET_RAW.
int open_frame_socket(OwnedFd& socket);

// Those of a queue pair with receive side scaling: 0, or the errno of a refusal.
int check_rss(const QpParts& parts, const ibv_qp_init_attr& attr);
// Before the queue pair has its engine. 0, or the errno of a refusal.
int join_frames(Qp& qp, const QpParts& parts);
// After a failure: the queue pair is not made.
void leave_frames(Qp& qp);

// Whether a queue pair that is in this state may have the rate: 0, or the errno of a refusal.
int check_rate(uint32_t rate_kbps, ibv_qp_state state);

}  // namespace dapple::soft::verbs
