/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int failures;

/* Prints a condition that does not hold, and goes on. */
#define CHECK(condition)                                                                                    \
  do {                                                                                                      \
    errno = 0;                                                                                              \
    if (!(condition)) {                                                                                     \
      printf("FAILED %s:%d: %s (%s)\n", strrchr(__FILE__, '/') + 1, __LINE__, #condition, strerror(errno)); \
      failures++;                                                                                           \
    }                                                                                                       \
  } while (0)
