// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple's libraries for unchanged programs, and the environment that loads them into a program.
#ifndef DAPPLE_TOOLS_DAPPLE_RUN_LIBRARIES_HPP
#define DAPPLE_TOOLS_DAPPLE_RUN_LIBRARIES_HPP

#include <string>

namespace dapple::run {

struct Libraries {
  std::string overlay;
  std::string doors;
  std::string plugin;  // without "-rdmavNN.so", as RDMAV_DRIVERS names it
};

// Looks beside this program. Ends it with a line if a library is missing, or has a name that LD_PRELOAD cannot hold.
Libraries find_libraries();

// Sets this process' environment for the program that is executed next. Without the device it removes the device's
// libraries, if the caller's environment has them.
void preload(const Libraries& libraries, bool device);

// AddressSanitizer's library ends a program that loads another library first, unless an option prevents this.
void let_address_sanitizer_come_later();

// Libraries of a build with a sanitizer need its runtime, which most programs lack. Leaks of such a program are not
// reported. To be called before preload(), so that the doors come first.
void preload_sanitizer(const char* runtime);

// Fixes the addresses of memory, which ThreadSanitizer needs on machines with too wide a random range. Prints a line if
// the system refuses.
void fix_addresses(const std::string& program);

}  // namespace dapple::run

#endif  // DAPPLE_TOOLS_DAPPLE_RUN_LIBRARIES_HPP
