// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// cmocka for C++: the headers that it needs first, and the linkage that it lacks before version 1.1.6.
#pragma once

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
extern "C" {
#include <cmocka.h>
}
// clang-format on

// Leaves the test. cmocka's skip() gives no reason.
#define skip_test(reason) (print_message("SKIP: %s\n", reason), skip())
