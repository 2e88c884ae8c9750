/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Options of the sanitizers' runtimes for test programs that fork or cancel threads. Other builds ignore them.
 */
#define EXPORT __attribute__((visibility("default")))

EXPORT const char* __asan_default_options(void);
EXPORT const char* __tsan_default_options(void);

/*
 * A cancelled thread leaves its frames without the code that clears their marks in AddressSanitizer's shadow memory.
 * When the runtime then frees the thread's signal stack, it would find such a mark at one of its own variables.
 */
const char* __asan_default_options(void) {
  return "use_sigaltstack=0";
}

/* The child of a fork makes threads, which ThreadSanitizer forbids unless it is told otherwise. */
const char* __tsan_default_options(void) {
  return "die_after_fork=0";
}
