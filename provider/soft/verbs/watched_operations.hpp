// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The plug-in's functions in a program with a sanitizer. The sanitizer learns when the plug-in is at work, and which
// memory the plug-in has filled in for the program. Other programs have the plain functions.
#pragma once

#include "provider/soft/abi/plugin.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft {

// The same operations for a program with a sanitizer. Only the first call's argument counts.
const Operations& watched_operations(const Operations& operations);

template <auto kFunction, typename Function = decltype(kFunction)>
struct Watched;

template <auto kFunction, typename Result, typename... Arguments>
struct Watched<kFunction, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    const InsidePlugin inside;
    return kFunction(arguments...);
  }
};

// For functions outside of that table: this one, or in a program with a sanitizer one that calls it.
template <auto kFunction>
decltype(kFunction) watched() {
  return Sanitizer::of_program() == nullptr ? kFunction : Watched<kFunction>::call;
}

}  // namespace dapple::soft
