/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * linked [MODULE...]: plays ping-pong with the libibverbs that the program is linked to. Then it does what `loader`
 * does.
 */
#include "ping_pong.h"
#include "run_modules.h"

int main(int argc, char** argv) {
  return ping_pong() != 0 ? 1 : run_modules(argc, argv);
}
