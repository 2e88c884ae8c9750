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

// A mount namespace into which other mounts still come, and out of which none goes. False with errno on failure.
bool enter_mount_namespace();

// A network namespace in which lo is up and has its usual addresses, and nothing else is. False with errno on failure:
// then `reason` has one line.
bool live_alone(std::string& reason);

// The result says what allows namespaces here: "; sysctl NAME=VALUE allows it". In a container whose profile of system
// calls forbids them, no setting helps, and the result names the profile. It is empty if nothing is known. errno stays.
std::string namespace_remedy();

}  // namespace dapple::run
