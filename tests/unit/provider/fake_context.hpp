// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A context as a libibverbs of any layout makes it, without a library and a device. Its operations are numbers that
// nobody calls, except those that a test sets.
#pragma once

#include <infiniband/verbs.h>
#include <string.h>

#include <new>

#include "provider/private_api/context_view.hpp"

namespace dapple::provider {

// Only one context is the current one; the fake library's set_operations() writes to its table.
class FakeContext {
 public:
  static constexpr size_t kTableOffset = 24;

  explicit FakeContext(const Layout& of) : layout(of) {
    library = {&of, set_operations, nullptr};
    context = new (memory_ + of.context_size - sizeof(ibv_context)) ibv_context();
    context->device = &device;
    context->abi_compat = __VERBS_ABI_IS_EXTENDED;
    context->cmd_fd = -1;
    strcpy(device.name, "fake0");
    extended()->sz = of.context_size;
    extended()->priv = reinterpret_cast<verbs_ex_private*>(priv_);
    for (size_t i = 0; i < of.num_operations; ++i) set_entry(i, number(i));
    publish();
    current = this;
  }
  ~FakeContext() { current = nullptr; }
  FakeContext(const FakeContext&) = delete;
  FakeContext& operator=(const FakeContext&) = delete;

  verbs_context* extended() { return verbs_get_ctx(context); }

  static AnyFunction number(size_t index) { return reinterpret_cast<AnyFunction>(0x10000 + 16 * index); }

  AnyFunction entry(size_t index) const {
    AnyFunction function;
    memcpy(&function, priv_ + kTableOffset + index * sizeof(function), sizeof(function));
    return function;
  }
  void set_entry(size_t index, AnyFunction function) {
    memcpy(priv_ + kTableOffset + index * sizeof(function), &function, sizeof(function));
  }

  AnyFunction operation(Operation operation) const { return entry(static_cast<size_t>(layout.index(operation))); }
  template <typename Function>
  void set_operation(Operation operation, Function* function) {
    set_entry(static_cast<size_t>(layout.index(operation)), reinterpret_cast<AnyFunction>(function));
  }

  // Sets the public pointers from the table, as the library does.
  void publish() {
    ibv_context_ops& ops = context->ops;
    show(Operation::alloc_mw, ops.alloc_mw);
    show(Operation::bind_mw, ops.bind_mw);
    show(Operation::dealloc_mw, ops.dealloc_mw);
    show(Operation::poll_cq, ops.poll_cq);
    show(Operation::post_recv, ops.post_recv);
    show(Operation::post_send, ops.post_send);
    show(Operation::post_srq_recv, ops.post_srq_recv);
    show(Operation::req_notify_cq, ops.req_notify_cq);
    show(Operation::reg_dm_mr, extended()->reg_dm_mr);
    show(Operation::reg_mr, ops._compat_reg_mr);
    show(Operation::rereg_mr, ops._compat_rereg_mr);
    show(Operation::dereg_mr, ops._compat_dereg_mr);
  }

  static void set_operations(verbs_context* context, const void* operations) {
    ++current->num_sets;
    current->set_at = context;
    for (size_t i = 0; i < current->layout.num_operations; ++i) {
      AnyFunction function;
      memcpy(&function, static_cast<const unsigned char*>(operations) + i * sizeof(function), sizeof(function));
      if (function != nullptr) current->set_entry(i, function);
    }
    for (size_t i = current->layout.num_operations; i < current->layout.num_operations + current->num_unknown; ++i) {
      AnyFunction function;
      memcpy(&function, static_cast<const unsigned char*>(operations) + i * sizeof(function), sizeof(function));
      if (function != nullptr) ++current->num_unknown_set;
    }
    current->publish();
  }

  // The start of the library's own structure.
  const void* base() const { return memory_; }

  static inline FakeContext* current = nullptr;

  const Layout& layout;
  VerbsLibrary library;
  ibv_device device = {};
  ibv_context* context;
  int num_sets = 0;
  // Operations that the library has after those that are known here, and how many of them it was asked to replace.
  size_t num_unknown = 0;
  size_t num_unknown_set = 0;
  const void* set_at = nullptr;

 private:
  template <typename Function>
  void show(Operation from, Function& to) {
    to = reinterpret_cast<Function>(operation(from));
  }

  alignas(16) unsigned char memory_[1024] = {};
  // One more entry, for tests that shift the table.
  alignas(16) unsigned char priv_[kTableOffset + (kMaxOperations + 1) * sizeof(AnyFunction)] = {};
};

}  // namespace dapple::provider
