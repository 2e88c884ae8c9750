/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* The end of a measuring program that has failed, and its clock. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Ends the program with a line. */
__attribute__((cold, noreturn)) static inline void fail(const char* what, const char* reason) {
  fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, what, reason[0] == '\0' ? "" : ": ", reason);
  exit(1);
}

/* The same, unless `good`. */
static inline void check(bool good, const char* what) {
  if (!good) fail(what, "");
}

static inline double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline double now_s(void) {
  return now_ns() / 1e9;
}
