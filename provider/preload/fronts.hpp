// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A program that looks functions up in a library's handle may use several copies of libibverbs. Each copy's function
// gets one of ours in front of it, which calls it.
#pragma once

#include <stddef.h>

#include <array>
#include <atomic>
#include <utility>

namespace dapple::preload {

// kCall: calls a function of a copy as `Result (*)(Arguments...)`, and adds what this library adds.
template <auto kCall>
class Fronts;

template <typename Result, typename... Arguments, Result (*kCall)(Result (*)(Arguments...), Arguments...)>
class Fronts<kCall> {
 public:
  using Function = Result (*)(Arguments...);

  // Ours in front of the function; null if there are too many copies. From any thread.
  static Function get(Function function) {
    for (size_t i = 0; i < kMaxCopies; ++i) {
      Function present = nullptr;
      if (functions_[i].compare_exchange_strong(present, function) || present == function) return kFronts[i];
    }
    return nullptr;
  }

 private:
  static constexpr size_t kMaxCopies = 16;

  template <size_t i>
  static Result front(Arguments... arguments) {
    return kCall(functions_[i].load(std::memory_order_acquire), arguments...);
  }
  template <size_t... i>
  static constexpr std::array<Function, kMaxCopies> all(std::index_sequence<i...>) {
    return {front<i>...};
  }

  static inline constinit std::atomic<Function> functions_[kMaxCopies] = {};
  static constexpr std::array<Function, kMaxCopies> kFronts = all(std::make_index_sequence<kMaxCopies>());
};

}  // namespace dapple::preload
