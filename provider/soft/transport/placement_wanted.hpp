// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string.h>

#include "provider/common/settings.hpp"
#include "provider/soft/faults/faults.hpp"
#include "provider/soft/faults/weak_order.hpp"
#include "provider/soft/sanitizers/sanitizer.hpp"

namespace dapple::soft {

// False if DAPPLE_PLACEMENT is "off", if this program's device is emulated as not coherent or places bytes in another
// order, or under dapple-run --check: then this program copies no bytes into other processes, and lets none of them
// copy. A program with a sanitizer, which would not see such accesses, does neither, unless DAPPLE_PLACEMENT is "on".
inline bool placement_wanted() {
  const char* wish = provider::settings().placement;
  const char* emulation = provider::settings().emulate;
  const bool emulated = emulation != nullptr && strcmp(emulation, "0") != 0;
  const bool disorders = program_faults().disorders_writes || has_weak_order();
  if (emulated || disorders || provider::settings().check_records != nullptr) return false;
  return wish == nullptr ? Sanitizer::of_program() == nullptr : strcmp(wish, "off") != 0;
}

}  // namespace dapple::soft
