// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A runner of tests under dapple-run that does not pass its environment on.
#pragma once

#include <string>

namespace dapple::run::doctor {

// Names the nearest process above this one that has dapple's variables, and those that this one lacks; empty if it
// lacks none, or if the system does not show the processes above it.
std::string variables_not_passed_on();

}  // namespace dapple::run::doctor
