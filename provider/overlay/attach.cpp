// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <errno.h>

#include <new>

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

// A process opens a handful of contexts.
Attached* all_attached;

}  // namespace

RegionOperations read_operations(const ContextView& view) {
  return {
      .reg_mr = read_operation<RegMr>(view, Operation::reg_mr),
      .reg_mr_ex = read_operation<RegMrEx>(view, Operation::reg_mr_ex),
      .alloc_null_mr = read_operation<AllocNullMr>(view, Operation::alloc_null_mr),
      .reg_dm_mr = read_operation<RegDmMr>(view, Operation::reg_dm_mr),
      .reg_dmabuf_mr = read_operation<RegDmabufMr>(view, Operation::reg_dmabuf_mr),
      .rereg_mr = read_operation<ReregMr>(view, Operation::rereg_mr),
      .dereg_mr = read_operation<DeregMr>(view, Operation::dereg_mr),
      .free_context = read_operation<FreeContext>(view, Operation::free_context),
  };
}

void lay_operations(const ContextView& view, const RegionOperations& operations) {
  Replacements replacements = {};
  replacements[static_cast<size_t>(Operation::reg_mr)] = any_function(operations.reg_mr);
  replacements[static_cast<size_t>(Operation::reg_mr_ex)] = any_function(operations.reg_mr_ex);
  replacements[static_cast<size_t>(Operation::alloc_null_mr)] = any_function(operations.alloc_null_mr);
  replacements[static_cast<size_t>(Operation::reg_dm_mr)] = any_function(operations.reg_dm_mr);
  replacements[static_cast<size_t>(Operation::reg_dmabuf_mr)] = any_function(operations.reg_dmabuf_mr);
  replacements[static_cast<size_t>(Operation::rereg_mr)] = any_function(operations.rereg_mr);
  replacements[static_cast<size_t>(Operation::dereg_mr)] = any_function(operations.dereg_mr);
  replacements[static_cast<size_t>(Operation::free_context)] = any_function(operations.free_context);
  view.set(replacements);
}

Attached* find_attached(const ibv_context* context) {
  Attached* attached = all_attached;
  while (attached != nullptr && attached->request.context != context) attached = attached->next;
  return attached;
}

void add_attached(Attached* attached) {
  attached->next = all_attached;
  all_attached = attached;
}

void remove_attached(const Attached* attached) {
  Attached** link = &all_attached;
  while (*link != attached) link = &(*link)->next;
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

int attach(const AttachRequest& request, const char** why) noexcept {
  if (!prepare_for_forks()) return ENOMEM;
  const WriteLock lock;
  if (const Attached* attached = find_attached(request.context)) {
    return attached->request.flags == request.flags ? 0 : EBUSY;
  }
  ContextView view;
  *why = ContextView::open(request.library, request.context, &view);
  if (*why != nullptr) return EOPNOTSUPP;

  auto* attached = new (std::nothrow) Attached{request, view, read_operations(view), {}, nullptr};
  if (attached == nullptr) return ENOMEM;
  add_attached(attached);
  RegionOperations operations = kOverlayOperations;
  if (attached->originals.reg_mr_ex == nullptr) operations.reg_mr_ex = nullptr;
  lay_operations(view, operations);
  return 0;
}

}  // namespace dapple::provider
