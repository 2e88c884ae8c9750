// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Runs a program with the emulator as a child, and checks its result.
#pragma once

#include "tools/dapple-run/findings/notes_file.hpp"

namespace dapple::run {

// The environment variable that names the file of the emulator's notes.
inline constexpr char kEmulationNotes[] = "DAPPLE_CHECK_LOG";

struct Emulation {
  long findings = 0;
  bool complete = false;  // the emulator ran, and each process has told its findings
};

// Reads the notes, and prints a line if the emulation is not complete.
Emulation read_emulation(const NotesFile& notes);

// The exit code for findings: DAPPLE_CHECK's, or 66. A malformed DAPPLE_CHECK ends dapple-run.
int check_exit_code();

// dapple-run's exit code for a program with the emulator that has ended with `code`: this code, or `check_exit`.
int verdict_of(const Emulation& emulation, int check_exit, int code);

// Runs `execute` in a child, passes signals on to it, and returns dapple-run's exit code: the child's, or `check_exit`.
int run_checked(int check_exit, void (*execute)(void* argument), void* argument);

}  // namespace dapple::run
