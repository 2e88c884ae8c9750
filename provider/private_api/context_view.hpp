// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// An open context's private table of operations, after its layout has been verified.
#pragma once

#include <infiniband/verbs.h>

#include <array>

#include "provider/private_api/library.hpp"

namespace dapple::provider {

// A function of the table, to be cast to its true type.
using AnyFunction = void (*)();

// Operations to replace in a context: null leaves an operation unchanged.
using Replacements = std::array<AnyFunction, kMaxOperations>;

// Replaces operations of a context through libibverbs' own function. Null operations, and operations that the release
// lacks, do not change. The context is the library's. Not while another thread uses it.
void set_operations(const VerbsLibrary& library, verbs_context* context, const Replacements& replacements);

// Trivially copyable; valid as long as the context is open.
class ContextView {
 public:
  // Verifies, by reading only, that the context's private table has the library's layout: the context has the size in
  // the layout, no operation is missing, and every function that is also public is at its operation's index and nowhere
  // else in the table. Returns null, or the reason why not: static, for people.
  static const char* open(const VerbsLibrary& library, ibv_context* context, ContextView* view);

  // The present operation; null if the release lacks it.
  AnyFunction get(Operation operation) const;

  // Replaces operations of the context through libibverbs' own function. An operation that the release lacks must be
  // null. Not while another thread uses the context.
  void set(const Replacements& replacements) const;

 private:
  VerbsLibrary library_;
  verbs_context* context_ = nullptr;  // as the library sees it; ours may be declared shorter or longer
  const unsigned char* table_ = nullptr;
};

}  // namespace dapple::provider
