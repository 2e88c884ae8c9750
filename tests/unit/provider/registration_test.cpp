// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/registration.hpp"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using dapple::provider::judge_registration;
using dapple::provider::refuses_noncoherent;
using dapple::provider::Registration;
using dapple::provider::try_registration;

void refuses_noncoherent__by_release(void**) {
  for (const char* release : {"7.1.0", "7.1", "7.2.0-1-amd64", "7.10.3", "8.0.0", "10.0.0-rc1"}) {
    if (!refuses_noncoherent(release)) fail_msg("%s", release);
  }
  for (const char* release : {"", "7", "7.", "7.0.9", "6.12.48+deb13-amd64", "6.99.0", "seven.one", ".7.1", "-7.1"}) {
    if (refuses_noncoherent(release)) fail_msg("%s", release);
  }
}

void judge_registration__results(void**) {
  assert_int_equal(judge_registration(0), Registration::kAccepted);
  for (int error : {EINVAL, EIO, EOPNOTSUPP, EREMOTEIO, EFAULT}) {
    assert_int_equal(judge_registration(error), Registration::kRefused);
  }
  for (int error : {ENOMEM, EPERM, EAGAIN, ENODEV}) {
    assert_int_equal(judge_registration(error), Registration::kNotAsked);
  }
}

// No operation is called: those of this context are null.
void try_registration__no_kernel_behind_the_context(void**) {
  ibv_context context = {};
  context.cmd_fd = -1;
  assert_int_equal(try_registration(&context, "7.2.0"), Registration::kNotAsked);
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  context.cmd_fd = ends[0];
  assert_int_equal(try_registration(&context, "7.2.0"), Registration::kNotAsked);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(refuses_noncoherent__by_release),
      cmocka_unit_test(judge_registration__results),
      cmocka_unit_test(try_registration__no_kernel_behind_the_context),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
