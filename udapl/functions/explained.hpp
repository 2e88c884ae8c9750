// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Under dapple-run --explain and --check, the provider's table has functions that report each error that they return:
// the error's name, and its meaning or the reason of the verb that has failed below it. An error that is no mistake of
// the program, or of a verb that has its report, is a line alone. Without these options, the table has the functions
// themselves.
#pragma once

#include <infiniband/dappledv_refusal.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "udapl/core/refusal.hpp"
#include "udapl/functions/dat.hpp"

namespace dapple::udapl::functions {

// An argument's value. A structure that is passed by value has none.
struct ArgumentValue {
  enum class Kind : uint8_t { kNone, kNumber, kBits, kPointer };

  template <class T>
  static ArgumentValue of(const T& argument) noexcept {
    if constexpr (std::is_pointer_v<T>) {
      return {Kind::kPointer, static_cast<int64_t>(reinterpret_cast<uintptr_t>(argument))};
    } else if constexpr (std::is_enum_v<T>) {
      // An enumeration whose type is signed has as many digits as its type, too.
      using Bits = std::make_unsigned_t<std::underlying_type_t<T>>;
      return {Kind::kBits, static_cast<int64_t>(static_cast<Bits>(argument))};
    } else if constexpr (std::is_integral_v<T>) {
      return {Kind::kNumber, static_cast<int64_t>(argument)};
    } else {
      return {Kind::kNone, 0};
    }
  }

  Kind kind;
  int64_t value;
};

// function: with dat_; arguments: their names, separated by commas, and their values. failures: those of
// dappledv_refusal() before the call.
void explain(const char* function, const char* arguments, std::initializer_list<ArgumentValue> values,
             DAT_RETURN result, unsigned failures) noexcept;

// Text has the functions' names: Text::function() and Text::arguments().
template <class Text, auto kCall, class Pointer>
struct Explained;

template <class Text, auto kCall, class... Arguments>
struct Explained<Text, kCall, DAT_RETURN (*)(Arguments...)> {
  static DAT_RETURN call(Arguments... arguments) {
    unsigned failures = 0;
    dappledv_refusal(&failures);
    forget_refusal();
    const DAT_RETURN result = kCall(arguments...);
    if (result != DAT_SUCCESS)
      explain(Text::function(), Text::arguments(), {ArgumentValue::of(arguments)...}, result, failures);
    return result;
  }
};

}  // namespace dapple::udapl::functions
