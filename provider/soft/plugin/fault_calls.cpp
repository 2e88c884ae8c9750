// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions of the plug-in that libdapple finds: provider/libdapple/fault_calls.hpp.
#include "provider/libdapple/fault_calls.hpp"

#include <type_traits>

#include "provider/soft/faults/fault_plan.hpp"

extern "C" {
[[gnu::visibility("default")]] int dapple_fault_next(const char* verb, int error) {
  return dapple::soft::plan_next_fault(verb, error);
}

[[gnu::visibility("default")]] int dapple_fault_clear() {
  return dapple::soft::clear_next_faults();
}

[[gnu::visibility("default")]] int dapple_fault_pending(const char* verb) {
  return dapple::soft::awaits_next_fault(verb) ? 1 : 0;
}
}

static_assert(std::is_same_v<decltype(&dapple_fault_next), dapple::provider::FaultNext>);
static_assert(std::is_same_v<decltype(&dapple_fault_clear), dapple::provider::FaultClear>);
static_assert(std::is_same_v<decltype(&dapple_fault_pending), dapple::provider::FaultPending>);
