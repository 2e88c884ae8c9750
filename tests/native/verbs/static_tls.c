// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A library with SIZE bytes of static TLS, as the runtimes of some languages have, for a program that preloads it.
static __thread char variables[SIZE] __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void use(void) {
  *(volatile char*)&variables[SIZE - 1] = 1;
}
