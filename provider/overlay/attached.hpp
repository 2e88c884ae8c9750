// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The record of each context with an overlay.
#pragma once

#include "provider/overlay/fork_lock.hpp"
#include "provider/overlay/overlay.hpp"
#include "provider/overlay/region_table.hpp"
#include "provider/private_api/context_view.hpp"
#include "provider/private_api/operation_types.hpp"

namespace dapple::provider {

// The operations that the overlay replaces: the provider's own, or ours. reg_mr_ex is null if the release lacks it.
struct RegionOperations {
  RegMr reg_mr;
  RegMrEx reg_mr_ex;
  AllocNullMr alloc_null_mr;
  RegDmMr reg_dm_mr;
  RegDmabufMr reg_dmabuf_mr;
  ReregMr rereg_mr;
  DeregMr dereg_mr;
  FreeContext free_context;
};

// Likewise, for a policy with a transfer watch; all are null without one.
struct TransferOperations {
  PostSend post_send;
  PollCq poll_cq;
  ModifyQp modify_qp;
  DestroyQp destroy_qp;
};

// The overlay's own operations. They look their context up, so only the tables of attached contexts may have them.
extern const RegionOperations kOverlayOperations;
extern const TransferOperations kTransferOperations;

struct Operations {
  RegionOperations regions;
  TransferOperations transfers;
};
Operations read_operations(const ContextView& view);
void lay_operations(const ContextView& view, const Operations& operations);

// Lives from attach() until the context is closed. So a caller with an open context may use it without the lock, except
// for regions and next.
struct Attached {
  AttachRequest request;
  ContextView view;
  RegionOperations originals;
  TransferOperations original_transfers;
  RegionTable regions;
  Attached* next;
};

// The record of a context whose table has our functions. Takes the lock.
Attached& attached_to(const ibv_context* context);

// The caller holds a ReadLock or a WriteLock. Null if the context has no overlay.
Attached* find_attached(const ibv_context* context);

// The caller holds a WriteLock.
void add_attached(Attached* attached);
void remove_attached(const Attached* attached);

}  // namespace dapple::provider
