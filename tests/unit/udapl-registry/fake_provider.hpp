// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

// A provider without hardware, in a library of its own. It records its calls in a FakeLog, whose address its ia_params
// carry as text, and reads its answers from there.
#include <dat2/dat_registry.h>

#include <cstddef>
#include <cstring>

/// If set, called in the middle of a function.
struct FakeHook {
  void (*function)(void*);
  void* argument;
  void operator()() const {
    if (function) function(argument);
  }
};

struct FakeLog {
  static constexpr std::size_t kMaxArguments = 12;
  static constexpr std::size_t kMaxArgument = 32;

  // Counted by the library that serves, 'a' or 'b'.
  char variant;
  int inits, finis, opens, closes;
  DAT_PROVIDER_INFO info;  // of the last init or fini
  char opened_name[DAT_NAME_MAX_LENGTH];
  DAT_RETURN open_result, close_result, slot_result;
  DAT_EXTENSION extension;  // the answer of ia_query
  bool forget_to_add, forget_to_remove;
  DAT_BOOLEAN related;
  FakeHook in_init, in_related, in_slot;
  const DAT_PROVIDER* provider;

  // The last call of any other slot: the slot's offset, and the bytes of its arguments.
  std::size_t slot;
  std::size_t argument_count;
  unsigned char arguments[kMaxArguments][kMaxArgument];
  int extension_op;
  unsigned long long extension_argument;
};

/// An object of the provider: a pointer to the table comes first.
struct FakeObject {
  const DAT_PROVIDER* provider;
  FakeLog* log;
};

template <auto kSlot>
std::size_t slot_offset() {
  static const DAT_PROVIDER table{};
  return static_cast<std::size_t>(reinterpret_cast<const char*>(&(table.*kSlot)) -
                                  reinterpret_cast<const char*>(&table));
}

template <class Argument>
void record(FakeLog& log, const Argument& argument) {
  static_assert(sizeof argument <= FakeLog::kMaxArgument);
  std::memcpy(log.arguments[log.argument_count++], &argument, sizeof argument);
}
