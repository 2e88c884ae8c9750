// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Public structures of libibverbs that the headers of older releases lack. Members may follow those of the
// attributes, so these are never copied.
#pragma once

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdint.h>

namespace dapple::provider {

// Since 59: struct ibv_dmah, and its attributes.
struct DmaHandle {
  ibv_context* context;
};
struct DmaHandleInitAttr {
  uint32_t comp_mask;  // DmaHandleMask
  uint32_t cpu_id;
  uint8_t ph;
  uint8_t tph_mem_type;  // TphMemoryType
};
enum DmaHandleMask : uint32_t {
  kDmaHandleCpu = 1 << 0,
  kDmaHandleHint = 1 << 1,
  kDmaHandleMemoryType = 1 << 2,
};
enum TphMemoryType : uint8_t { kTphVolatile = 0, kTphPersistent = 1 };

// Since 59: struct ibv_mr_init_attr. The DMA handle is valid with its bit alone.
struct RegionInitAttr {
  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  DmaHandle* dmah;
};
inline constexpr uint64_t kRegionInitIova = 1 << 0;
inline constexpr uint64_t kRegionInitAddr = 1 << 1;
inline constexpr uint64_t kRegionInitFd = 1 << 2;
inline constexpr uint64_t kRegionInitFdOffset = 1 << 3;
inline constexpr uint64_t kRegionInitDmaHandle = 1 << 4;

// Since 65: struct ibv_comp_cntr, and its attributes.
struct CompletionCounter {
  ibv_context* context;
  uint32_t handle;
};
enum CompletionCounterType : uint32_t { kCountRequests = 0, kCountBytes = 1 };
struct CompletionCounterInitAttr {
  uint32_t comp_mask;
  uint32_t type;  // CompletionCounterType
  uint32_t flags;
};
struct CompletionCounterCaps {
  uint64_t max_value;
  uint32_t max_counters;
  uint32_t supported_qp_attach_ops;  // CountedOperation
};
enum CountedOperation : uint32_t {
  kCountSends = 1 << 0,
  kCountReceives = 1 << 1,
  kCountReads = 1 << 2,
  kCountPeersReads = 1 << 3,
  kCountWrites = 1 << 4,
  kCountPeersWrites = 1 << 5,
};
inline constexpr uint32_t kCountedOperations = (1 << 6) - 1;
struct CompletionCounterAttachAttr {
  uint32_t comp_mask;
  uint32_t op_mask;  // CountedOperation
};

}  // namespace dapple::provider
