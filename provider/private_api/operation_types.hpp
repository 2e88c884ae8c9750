// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The true types of the operations that we call or replace; the same in every known release. libibverbs' own structure
// verbs_mr begins with the ibv_mr, and only this part is used.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

namespace dapple::provider {

// The first members of struct ibv_mr_init_attr, which is public only since 59. More members follow, so it is never
// copied.
struct RegionInitAttr {
  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
};
inline constexpr uint64_t kRegionInitIova = 1 << 0;
inline constexpr uint64_t kRegionInitAddr = 1 << 1;
inline constexpr uint64_t kRegionInitFd = 1 << 2;
inline constexpr uint64_t kRegionInitFdOffset = 1 << 3;

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
