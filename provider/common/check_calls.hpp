// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The interface by which the emulator passes its findings to the check of the software device, under dapple-run
// --check, and libdapple gets the reasons of failures.
#pragma once

#include "provider/common/stack.hpp"

namespace dapple::provider {

// An error. The texts are sentences.
struct CheckFinding {
  const char* kind;
  const char* text;
  const char* remedy;
  const Place* places;
  int num_places;
};

// Allocates memory and takes locks. If the check's options have halt_on_error, an error ends the process here, after a
// call of before_halt. If before_halt is null, the process goes on.
using ShowFinding = void (*)(const CheckFinding& finding, void (*before_halt)());

// The plug-in exports a function of this name and type. It returns null without --check.
inline constexpr char kFindShowFinding[] = "dapple_find_show_finding";
using FindShowFinding = ShowFinding (*)();

// For dappledv_refusal().
inline constexpr char kLastRefusal[] = "dapple_last_refusal";
using LastRefusal = const char* (*)(unsigned& count);

}  // namespace dapple::provider
