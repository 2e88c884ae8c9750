// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Network namespaces for tests, as root or as an unprivileged user.
#pragma once

namespace dapple::tests {

// Prints SKIP and ends the program with 77.
[[noreturn]] void skip_program(const char* why, const char* more = "");

// Moves this process, which must have one thread, into a new network namespace, and brings its loopback device up. An
// unprivileged user gets a user namespace too. False if the system forbids it.
bool enter_new_namespace();
// The same. If it is forbidden, the namespace that a script has made will do (tests/native/own-network); without one,
// the test is skipped.
void need_new_namespace();

// A veth pair between a new namespace and this one: 10.77.0.1 and fd77::1 at "va" here, 10.77.0.2 and fd77::2 at "vb"
// there.
struct VethPair {
  int other = -1;       // a descriptor of the other namespace, or -1: no pair could be made
  bool merges = false;  // vb waits some time for packets that it can merge (GRO)
};
VethPair make_veth_pair();

// Runs a shell command; true if it succeeded.
bool run(const char* command);

}  // namespace dapple::tests
