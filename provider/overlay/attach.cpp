// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <assert.h>
#include <errno.h>

#include <new>

#include "provider/device/refusal.hpp"
#include "provider/overlay/attached.hpp"

namespace dapple::provider {
namespace {

template <typename Function>
AnyFunction any_function(Function* function) {
  return reinterpret_cast<AnyFunction>(function);
}

template <typename Function>
Function read_operation(const ContextView& view, Operation operation) {
  return reinterpret_cast<Function>(view.get(operation));
}

// A list, because a process opens few contexts. Guarded by the lock of fork_lock.hpp.
Attached* all_attached;

// True if the context has an overlay or can have none; sets attach()'s result then. Otherwise opens the context's view.
// The caller holds a ReadLock or a WriteLock.
bool is_settled(const AttachRequest& request, int* result, ContextView* view, const char** why) {
  if (const Attached* attached = find_attached(request.context)) {
    *result = attached->request.flags == request.flags
                  ? 0
                  : refuse(EBUSY, "the context is attached with the flags 0x%llx already.\nAttach a context once.",
                           static_cast<unsigned long long>(attached->request.flags));
    return true;
  }
  *why = ContextView::open(request.library, request.context, view);
  if (*why != nullptr) *result = EOPNOTSUPP;
  return *why != nullptr;
}

}  // namespace

Operations read_operations(const ContextView& view) {
  return {
      .regions =
          {
              .reg_mr = read_operation<RegMr>(view, Operation::reg_mr),
              .reg_mr_ex = read_operation<RegMrEx>(view, Operation::reg_mr_ex),
              .alloc_null_mr = read_operation<AllocNullMr>(view, Operation::alloc_null_mr),
              .reg_dm_mr = read_operation<RegDmMr>(view, Operation::reg_dm_mr),
              .reg_dmabuf_mr = read_operation<RegDmabufMr>(view, Operation::reg_dmabuf_mr),
              .rereg_mr = read_operation<ReregMr>(view, Operation::rereg_mr),
              .dereg_mr = read_operation<DeregMr>(view, Operation::dereg_mr),
              .free_context = read_operation<FreeContext>(view, Operation::free_context),
          },
      .transfers =
          {
              .post_send = read_operation<PostSend>(view, Operation::post_send),
              .poll_cq = read_operation<PollCq>(view, Operation::poll_cq),
              .modify_qp = read_operation<ModifyQp>(view, Operation::modify_qp),
              .destroy_qp = read_operation<DestroyQp>(view, Operation::destroy_qp),
          },
  };
}

void lay_operations(const ContextView& view, const Operations& operations) {
  const auto& [regions, transfers] = operations;
  Replacements replacements = {};
  const auto lay = [&replacements](Operation operation, auto* function) {
    replacements[static_cast<size_t>(operation)] = any_function(function);
  };
  lay(Operation::reg_mr, regions.reg_mr);
  lay(Operation::reg_mr_ex, regions.reg_mr_ex);
  lay(Operation::alloc_null_mr, regions.alloc_null_mr);
  lay(Operation::reg_dm_mr, regions.reg_dm_mr);
  lay(Operation::reg_dmabuf_mr, regions.reg_dmabuf_mr);
  lay(Operation::rereg_mr, regions.rereg_mr);
  lay(Operation::dereg_mr, regions.dereg_mr);
  lay(Operation::free_context, regions.free_context);
  lay(Operation::post_send, transfers.post_send);
  lay(Operation::poll_cq, transfers.poll_cq);
  lay(Operation::modify_qp, transfers.modify_qp);
  lay(Operation::destroy_qp, transfers.destroy_qp);
  view.set(replacements);
}

Attached& attached_to(const ibv_context* context) {
  const ReadLock lock;
  // The record always exists: our functions are in a context's table only from attach() to free_context().
  Attached* attached = find_attached(context);
  assert(attached != nullptr);
  return *attached;
}

Attached* find_attached(const ibv_context* context) {
  Attached* attached = all_attached;
  while (attached != nullptr && attached->request.context != context) attached = attached->next;
  return attached;
}

void add_attached(Attached* attached) {
  assert(find_attached(attached->request.context) == nullptr);
  attached->next = all_attached;
  all_attached = attached;
}

void remove_attached(const Attached* attached) {
  Attached** link = &all_attached;
  while (*link != attached) {
    assert(*link != nullptr);
    link = &(*link)->next;
  }
  *link = attached->next;
}

bool fill_if_emulated(const ibv_context* context, dappledv_device_attr* attr) noexcept {
  const ReadLock lock;
  const Attached* attached = find_attached(context);
  if (attached == nullptr || (attached->request.flags & DAPPLEDV_ATTACH_EMULATE) == 0) return false;
  *attr = attached->request.attr;
  return true;
}

const char* attach_obstacle(const VerbsLibrary& library, ibv_context* context) noexcept {
  if (library.layout == nullptr || context == nullptr) return library.why;
  const ReadLock lock;
  if (find_attached(context) != nullptr) return nullptr;
  ContextView view;
  return ContextView::open(library, context, &view);
}

int check_attach(const AttachRequest& request, const char** why) noexcept {
  const ReadLock lock;
  ContextView view;
  int result = 0;
  is_settled(request, &result, &view, why);
  return result;
}

int attach(const AttachRequest& request, const char** why) noexcept {
  if (!prepare_for_forks()) return ENOMEM;
  const WriteLock lock;
  ContextView view;
  int result = 0;
  if (is_settled(request, &result, &view, why)) return result;

  Operations originals = read_operations(view);
  Operations ours = {kOverlayOperations, kTransferOperations};
  if (originals.regions.reg_mr_ex == nullptr) ours.regions.reg_mr_ex = nullptr;
  // The data path does not change unless a policy watches it.
  if (request.policy == nullptr || request.policy->transfers() == nullptr) originals.transfers = ours.transfers = {};
  auto* attached = new (std::nothrow) Attached{request, view, originals.regions, originals.transfers, {}, nullptr};
  if (attached == nullptr) return ENOMEM;
  add_attached(attached);
  lay_operations(view, ours);
  return 0;
}

}  // namespace dapple::provider
