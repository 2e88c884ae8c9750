// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The true types of the operations that we call or replace; the same in every known release. libibverbs' own structure
// verbs_mr begins with the ibv_mr, and only this part is used.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

#include "provider/private_api/newer_types.hpp"

namespace dapple::provider {

using RegMr = ibv_mr* (*)(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access);
using RegMrEx = ibv_mr* (*)(ibv_pd* pd, RegionInitAttr* attr);
using AllocNullMr = ibv_mr* (*)(ibv_pd* pd);
using RegDmMr = ibv_mr* (*)(ibv_pd* pd, ibv_dm* dm, uint64_t offset, size_t length, unsigned access);
using RegDmabufMr = ibv_mr* (*)(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access);
using ReregMr = int (*)(ibv_mr* mr, int flags, ibv_pd* pd, void* address, size_t length, int access);
using DeregMr = int (*)(ibv_mr* mr);
using PostSend = int (*)(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad);
using PollCq = int (*)(ibv_cq* cq, int count, ibv_wc* completions);
using QueryQp = int (*)(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init);
using ModifyQp = int (*)(ibv_qp* qp, ibv_qp_attr* attr, int mask);
using DestroyQp = int (*)(ibv_qp* qp);
using FreeContext = void (*)(ibv_context* context);

}  // namespace dapple::provider
