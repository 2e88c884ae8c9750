// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A function of the plug-in that a program calls, in a program with a sanitizer: the sanitizer learns that the plug-in
// is at work.
#pragma once

#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft {

template <auto kFunction, typename Function = decltype(kFunction)>
struct Watched;

template <auto kFunction, typename Result, typename... Arguments>
struct Watched<kFunction, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    const InsidePlugin inside;
    return kFunction(arguments...);
  }
};

// This function, or in a program with a sanitizer one that calls it.
template <auto kFunction>
decltype(kFunction) watched() {
  return Sanitizer::of_program() == nullptr ? kFunction : Watched<kFunction>::call;
}

}  // namespace dapple::soft
