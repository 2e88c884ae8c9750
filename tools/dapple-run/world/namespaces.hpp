// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Namespaces of this process' own, and of the program that it becomes.
#pragma once

#include <string>

namespace dapple::run {

// Enters new namespaces of these kinds (CLONE_NEWNS, CLONE_NEWNET). Without the privilege, a new user namespace as
// well, in which the user keeps the numbers of user and group. False with errno on failure.
bool enter_namespaces(int kinds);

// A network namespace in which lo is up and has its usual addresses, and nothing else is. False on failure: then
// `reason` has one line.
bool live_alone(std::string& reason);

}  // namespace dapple::run
