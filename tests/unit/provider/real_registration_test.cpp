// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// On a machine with an RDMA device: a page is registered, and nothing of the registration is left.
#include <infiniband/verbs.h>
#include <stdio.h>

#include "provider/device/registration.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::provider::Registration;
using dapple::provider::try_registration;

ibv_context* context;

int open_first_device(void**) {
  ibv_device** devices = ibv_get_device_list(nullptr);
  if (devices == nullptr || devices[0] == nullptr) {
    fprintf(stderr, "there is no RDMA device here\n");
    return -1;
  }
  context = ibv_open_device(devices[0]);
  ibv_free_device_list(devices);
  return context == nullptr ? -1 : 0;
}

int close_device(void**) {
  return context == nullptr ? 0 : ibv_close_device(context);
}

void try_registration__of_a_release_that_demands_coherence(void**) {
  // Often enough to notice a zone or a region that leaks: a device has a limited number.
  for (int i = 0; i < 3000; ++i) assert_int_equal(try_registration(context, "7.2.0"), Registration::kAccepted);
}

void try_registration__of_an_older_release(void**) {
  assert_int_equal(try_registration(context, "7.0.12"), Registration::kNotAsked);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(try_registration__of_a_release_that_demands_coherence),
      cmocka_unit_test(try_registration__of_an_older_release),
  };
  return cmocka_run_group_tests(tests, open_first_device, close_device);
}
