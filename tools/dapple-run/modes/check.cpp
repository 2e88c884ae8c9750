// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/modes/check.hpp"

#include <dlfcn.h>
#include <stdio.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/dapple-run/findings/findings.hpp"
#include "tools/dapple-run/findings/notes_file.hpp"
#include "tools/dapple-run/findings/report_files.hpp"
#include "tools/dapple-run/modes/checked_run.hpp"
#include "tools/dapple-run/modes/hang.hpp"
#include "tools/dapple-run/process/child.hpp"
#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {
namespace {

// A report has the functions and lines of the program only by libdw, and lines only by debug information.
void explain_missing_lines(const Findings& findings) {
  if (!findings.lacks_lines()) return;
  if (dlopen("libdw.so.1", RTLD_LAZY) == nullptr) {
    say("the reports have no lines, because this machine lacks libdw.so.1; its package is libdw1 (Debian, Ubuntu) or "
        "elfutils-libs (Fedora)");
  } else {
    say("the reports have no lines, because %s has no debug information (-g)",
        findings.reports[0].value("program", "the program").c_str());
  }
}

// Those that a test runner may have thrown away with the output of its tests.
void print_kept(const std::vector<std::string>& reports) {
  if (reports.empty()) return;
  say("the program's processes have written these reports to another place than this standard error:");
  for (const std::string& text : reports) fputs(text.c_str(), stderr);
}

}  // namespace

int run_with_check(const ReportFiles& files, const CheckedRun& run, void (*execute)(void* argument), void* argument) {
  // Malformed options end dapple-run before the program starts.
  const int given_code = check_exit_code();
  const NotesFile notes(run.is_checked || !files.empty() ? "DAPPLE_CHECK_RECORDS" : kHangRecords);
  std::optional<NotesFile> emulation;
  if (run.emulate) emulation.emplace(kEmulationNotes);
  ReportFile json("--json", files.json), sarif("--sarif", files.sarif), junit("--junit", files.junit);
  bool hangs = false;
  const int code = run.hang > 0 ? run_watched_child(run.hang, hangs, execute, argument) : run_child(execute, argument);
  Findings findings = read_findings(notes.name());
  findings.status = code;
  const Emulation emulated = run.emulate ? read_emulation(*emulation) : Emulation{.complete = true};
  findings.complete = emulated.complete;
  // A program that is not checked may well open no device.
  if (!run.is_checked) findings.attached = true;
  bool written = json.write(as_json_lines(findings));
  written = sarif.write(as_sarif(findings)) && written;
  written = junit.write(as_junit(findings, run.program)) && written;
  print_kept(findings.kept);
  explain_missing_lines(findings);
  if (hangs) return given_code == 0 ? code : given_code;
  if (!run.is_checked) return verdict_of(emulated, given_code, code);
  if (!findings.attached) {
    say("nothing was checked: no software device was opened, or its process could not write to %s", notes.name());
  }
  const int check_code = findings.attached ? findings.exit_code : given_code;
  // An end by a signal is passed on as such.
  if (check_code == 0 || code > 128) return code;
  if (findings.has_errors()) return check_code;
  return code == 0 && !(findings.attached && findings.complete && written) ? check_code : code;
}

}  // namespace dapple::run
