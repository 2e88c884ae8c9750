// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The rig of a test: the objects that it works with, made anew for each test.
#pragma once

#include "tests/unit/provider/cmocka.hpp"

namespace dapple::tests {

template <typename Rig>
int make_rig(void** state) {
  *state = new Rig;
  return 0;
}

template <typename Rig>
int drop_rig(void** state) {
  delete static_cast<Rig*>(*state);
  return 0;
}

// In a test: its rig.
template <typename Rig>
Rig& rig_of(void** state) {
  return *static_cast<Rig*>(*state);
}

}  // namespace dapple::tests

// An entry of cmocka's list.
#define rig_test(test, Rig) \
  cmocka_unit_test_setup_teardown(test, dapple::tests::make_rig<Rig>, dapple::tests::drop_rig<Rig>)
