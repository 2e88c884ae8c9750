/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * The programs of this folder make the mistake that an argument names, and expect the failure. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* mistake;

/* Ends the program unless the condition is true. */
#define MUST(condition)                                  \
  do {                                                   \
    if (!(condition)) {                                  \
      printf("line %d: %s: %m\n", __LINE__, #condition); \
      exit(1);                                           \
    }                                                    \
  } while (0)
#define IS(name) (strcmp(mistake, name) == 0)
