/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * A library whose constructor waits, while dlopen() holds the lock of the dynamic linker. */
extern void wait_in_constructor(void); /* of the program that loads it */

__attribute__((constructor)) static void wait_here(void) {
  wait_in_constructor();
}
