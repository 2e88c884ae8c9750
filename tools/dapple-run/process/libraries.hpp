// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple's libraries for unchanged programs, and the environment that loads them into a program.
#pragma once

#include <string>

namespace dapple::run {

struct Library {
  std::string file;
  // As the environment names it: with $LIB, which a loader of the GNU C library replaces. Other loaders find no such
  // file, and start their programs without it. The file's path if this system's $LIB does not lead to it.
  std::string word;
};

struct Libraries {
  Library overlay;
  Library doors;
  Library heap;
  Library plugin;  // without "-rdmavNN.so", as RDMAV_DRIVERS names it
};

// Finds the libraries beside this program. Ends the program with a line if one is missing, or has a name that
// LD_PRELOAD cannot hold.
Libraries find_libraries();

// A library of another copy of dapple that LD_PRELOAD or RDMAV_DRIVERS names; empty if there is none. preload()
// replaces it.
std::string other_copy_in_environment(const Libraries& libraries);

// For a program with a GNU C library of its own, in which $LIB may mean something else.
void name_by_file(Libraries& libraries);

// Sets this process' environment for the next program that it executes. Without the device it removes the device's
// libraries from the caller's environment.
void preload(const Libraries& libraries, bool device);

// For --check: loads the library that sees what the program frees. Without `wanted`, removes that library from the
// environment. Call it before preload(), so that the doors come first.
void preload_heap(const Libraries& libraries, bool wanted);

// AddressSanitizer's library ends a program that loads another library first, unless an option prevents this.
void let_address_sanitizer_come_later();

// Libraries of a build with a sanitizer need its runtime, which most programs lack. Leaks of such a program, and races
// between its own accesses, are not reported, and its children may make threads. Call this before preload(), so that
// the doors come first.
void preload_sanitizer(const char* runtime);

// For a program with ThreadSanitizer: fixes the addresses of memory, because some machines randomise them over too wide
// a range for it, and lets it leave the thread-local memory of libraries alone. Prints a line if the system does not
// let the addresses be fixed.
void prepare_for_thread_sanitizer(const std::string& program);

}  // namespace dapple::run
