/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * loader MODULE...: loads each module as Python loads an extension, and plays ping-pong in each, in turn and in threads
 * of their own.
 */
#include "run_modules.h"

int main(int argc, char** argv) {
  return run_modules(argc, argv);
}
