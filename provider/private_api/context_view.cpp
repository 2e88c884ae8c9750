// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/private_api/context_view.hpp"

#include <stdint.h>
#include <string.h>

#include <type_traits>

namespace dapple::provider {
namespace {

// From the start of a context's private part to its table; the same in every known release.
constexpr size_t kTableOffset = 24;

// The size of the table that verbs_set_ops() gets. It reads an entry for each operation of its own release. A later
// release may have operations that are unknown here; their entries are null, so verbs_set_ops() leaves them alone.
constexpr size_t kOperationsGiven = 256;
static_assert(kOperationsGiven > 2 * kMaxOperations);

struct Anchor {
  Operation operation;
  AnyFunction function;
};

template <typename Function>
AnyFunction any_function(Function* function) {
  static_assert(std::is_function_v<Function>);
  return reinterpret_cast<AnyFunction>(function);
}

// The operations of the table that libibverbs also shows in its public structures. The last three are kept for old
// programs and are never called, but they are the operations that an overlay replaces.
std::array<Anchor, 12> anchors_of(const ibv_context_ops& ops, const verbs_context& extended) {
  return {{
      {Operation::alloc_mw, any_function(ops.alloc_mw)},
      {Operation::bind_mw, any_function(ops.bind_mw)},
      {Operation::dealloc_mw, any_function(ops.dealloc_mw)},
      {Operation::poll_cq, any_function(ops.poll_cq)},
      {Operation::post_recv, any_function(ops.post_recv)},
      {Operation::post_send, any_function(ops.post_send)},
      {Operation::post_srq_recv, any_function(ops.post_srq_recv)},
      {Operation::req_notify_cq, any_function(ops.req_notify_cq)},
      {Operation::reg_dm_mr, any_function(extended.reg_dm_mr)},
      {Operation::reg_mr, any_function(ops._compat_reg_mr)},
      {Operation::rereg_mr, any_function(ops._compat_rereg_mr)},
      {Operation::dereg_mr, any_function(ops._compat_dereg_mr)},
  }};
}

AnyFunction entry(const unsigned char* table, size_t index) {
  AnyFunction function;
  memcpy(&function, table + index * sizeof(function), sizeof(function));
  return function;
}

// Is the anchor's function at its own index, and at no other?
bool holds(const Layout& layout, const unsigned char* table, const Anchor& anchor) {
  const int index = layout.index(anchor.operation);
  if (index < 0) return false;
  for (size_t i = 0; i < layout.num_operations; ++i) {
    if ((entry(table, i) == anchor.function) != (i == static_cast<size_t>(index))) return false;
  }
  return true;
}

}  // namespace

const char* ContextView::open(const VerbsLibrary& library, ibv_context* context, ContextView* view) {
  if (library.layout == nullptr) return library.why;
  const Layout& layout = *library.layout;
  // The extension lies in front of the context, and new fields are added at the extension's front. So a field that our
  // header knows has the same distance from the extension's end in every release.
  const verbs_context* extended = verbs_get_ctx(context);
  if (extended == nullptr) return "a libibverbs from before 2013 opened it";
  if (extended->sz != layout.context_size) return "its context differs in size from this release's";
  if (extended->priv == nullptr) return "its context has no private part";

  const auto* table = reinterpret_cast<const unsigned char*>(extended->priv) + kTableOffset;
  for (size_t i = 0; i < layout.num_operations; ++i) {
    if (entry(table, i) == nullptr) return "its private table of operations has a gap";
  }
  for (const Anchor& anchor : anchors_of(context->ops, *extended)) {
    if (!holds(layout, table, anchor)) return "its private table of operations differs from this release's";
  }

  view->library_ = library;
  view->context_ = reinterpret_cast<verbs_context*>(reinterpret_cast<unsigned char*>(context) + sizeof(ibv_context) -
                                                    layout.context_size);
  view->table_ = table;
  return nullptr;
}

AnyFunction ContextView::get(Operation operation) const {
  const int index = library_.layout->index(operation);
  return index < 0 ? nullptr : entry(table_, static_cast<size_t>(index));
}

void ContextView::set(const Replacements& replacements) const {
  set_operations(library_, context_, replacements);
}

void set_operations(const VerbsLibrary& library, verbs_context* context, const Replacements& replacements) {
  AnyFunction operations[kOperationsGiven] = {};
  for (size_t i = 0; i < kMaxOperations; ++i) {
    const int index = library.layout->index(static_cast<Operation>(i));
    if (index >= 0) operations[index] = replacements[i];
  }
  library.set_operations(context, operations);
}

}  // namespace dapple::provider
