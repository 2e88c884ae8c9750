// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-test, dapple-lat and dapple-bw: the two sides of a uDAPL connection, as a smoke test or for measuring.
// DAPPLE_PERF_KIND selects the program.
#include "tools/perf/program.hpp"

int main(int argc, char** argv) {
  return dapple::perf::run_program(dapple::perf::Kind::DAPPLE_PERF_KIND, argc, argv);
}
