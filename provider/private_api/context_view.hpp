// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An open context's private table of operations, after proof that it is laid out as believed.
#ifndef DAPPLE_PROVIDER_PRIVATE_API_CONTEXT_VIEW_HPP
#define DAPPLE_PROVIDER_PRIVATE_API_CONTEXT_VIEW_HPP

#include <infiniband/verbs.h>

#include <array>

#include "provider/private_api/library.hpp"

namespace dapple::provider {

// A function of the table, to be cast to its true type.
using AnyFunction = void (*)();

// Operations to lay over a context: null leaves one as it is.
using Replacements = std::array<AnyFunction, kMaxOperations>;

// Lays operations over a context through libibverbs' own function: null ones stay as they are, and so does what the
// release does not have. The context is as the library sees it. Not while another thread uses it.
void set_operations(const VerbsLibrary& library, verbs_context* context, const Replacements& replacements);

// Trivially copyable; valid as long as the context is open.
class ContextView {
 public:
  // Proves that the context's private table has the library's layout, reading only: the context says the size that the
  // layout has; no operation is missing; and every function that libibverbs shows publicly, too, is found at its
  // operation's index and nowhere else in the table. Returns null, or why not: static, for people.
  static const char* open(const VerbsLibrary& library, ibv_context* context, ContextView* view);

  // The operation as it is now; null where the release has none.
  AnyFunction get(Operation operation) const;

  // Lays operations over the context through libibverbs' own function. One that the release does not have must be null.
  // Not while another thread uses the context.
  void set(const Replacements& replacements) const;

 private:
  VerbsLibrary library_;
  verbs_context* context_ = nullptr;  // as the library sees it; ours may be declared shorter or longer
  const unsigned char* table_ = nullptr;
};

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_PRIVATE_API_CONTEXT_VIEW_HPP
