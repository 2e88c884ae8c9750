# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Tests of scripts/softroce itself: the other tests rely on the virtual machine.

# dapple_runner_test(NAME [KERNEL]): a script of this folder. It prints SKIP with the reason if no VM can run.
function(dapple_runner_test name)
  add_test(NAME softroce/${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/${name} ${ARGN})
  set_tests_properties(softroce/${name} PROPERTIES LABELS softroce TIMEOUT 600 SKIP_RETURN_CODE 77 RUN_SERIAL ON)
endfunction()

dapple_runner_test(command-line)
dapple_runner_test(exit-codes ${DAPPLE_TEST_KERNEL})
dapple_runner_test(one-guest ${DAPPLE_TEST_KERNEL})
dapple_runner_test(two-guests ${DAPPLE_TEST_KERNEL})
