// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The interface by which libdapple passes the emulator's findings, and the program's marks of its memory, to the check
// of the software device, under dapple-run --check, and gets the reasons of failures.
#pragma once

#include <stddef.h>

#include "provider/common/stack.hpp"

namespace dapple::provider {

// An error. The texts are sentences.
struct CheckFinding {
  const char* kind;
  const char* text;
  const char* remedy;
  const ReportedStack* places;
  int num_places;
};

// Allocates memory and takes locks. If the check's options have halt_on_error, an error ends the process here, after a
// call of before_halt. If before_halt is null, the process goes on.
using ShowFinding = void (*)(const CheckFinding& finding, void (*before_halt)());

// The plug-in exports a function of this name and type. It returns null without --check.
inline constexpr char kFindShowFinding[] = "dapple_find_show_finding";
using FindShowFinding = ShowFinding (*)();

// For dappledv_refusal().
inline constexpr char kLastRefusal[] = "dapple_last_refusal";
using LastRefusal = const char* (*)(unsigned& count);

// For dappledv_report_failure().
inline constexpr char kReportFailure[] = "dapple_report_failure";
using ReportFailure = bool (*)(const char* text, const char* remedy);

// For dappledv_note_call() and dappledv_report_missing_call(). They return false without --check.
inline constexpr char kNoteCall[] = "dapple_note_call";
using NoteCall = bool (*)(Stack& stack);
inline constexpr char kReportMissingCall[] = "dapple_report_missing_call";
using ReportMissingCall = bool (*)(const char* text, const char* remedy, const Stack& after);

// The same for dappledv_mark_free() and dappledv_mark_used(). It does nothing without --check.
inline constexpr char kMarkMemory[] = "dapple_mark_memory";
using MarkMemory = void (*)(const void* memory, size_t size, bool is_free);

}  // namespace dapple::provider
