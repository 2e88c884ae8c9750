// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The posting verbs of a program under dapple-run --check: they note each request before the device gets it.
#pragma once

#include <infiniband/verbs.h>

namespace dapple::soft::check {

int post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad);
int bind_mw(ibv_qp* qp, ibv_mw* window, ibv_mw_bind* bind);
int post_recv(ibv_qp* qp, ibv_recv_wr* requests, ibv_recv_wr** bad);
int post_srq_ops(ibv_srq* srq, ibv_ops_wr* operations, ibv_ops_wr** bad);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* requests, ibv_recv_wr** bad);
// The same for the requests of the extended interface.
int wr_complete(ibv_qp_ex* qp);

}  // namespace dapple::soft::check
