// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple's libraries for programs that do not know of it, and the environment that brings them into a program.
#ifndef DAPPLE_TOOLS_DAPPLE_RUN_LIBRARIES_HPP
#define DAPPLE_TOOLS_DAPPLE_RUN_LIBRARIES_HPP

#include <string>

namespace dapple::run {

struct Libraries {
  std::string overlay;
  std::string doors;
  std::string plugin;  // without "-rdmavNN.so", as RDMAV_DRIVERS names it
};

// Looks beside this program. Ends it with a line if something is missing, or has a name that LD_PRELOAD cannot hold.
Libraries find_libraries();

// In this process' environment, for the program that is executed next. Without the device it takes the device's
// libraries out, if the caller's environment has them.
void preload(const Libraries& libraries, bool device);

// AddressSanitizer's library ends a program into which another was loaded before it, unless it is told not to.
void let_address_sanitizer_come_later();

// Memory at fixed places, which ThreadSanitizer needs on machines that choose them from too wide a range. Says so if
// the system refuses.
void fix_addresses(const std::string& program);

}  // namespace dapple::run

#endif  // DAPPLE_TOOLS_DAPPLE_RUN_LIBRARIES_HPP
