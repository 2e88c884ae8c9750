// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/modes/checked_run.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "provider/member/check_options.hpp"
#include "tools/dapple-run/process/child.hpp"
#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {

int check_exit_code() {
  const char* given = getenv("DAPPLE_CHECK");
  soft::check::Options options;
  const std::string_view wrong = soft::check::read_options(given != nullptr ? given : "", options);
  if (!wrong.empty()) {
    fail(kWrongUse, "DAPPLE_CHECK has the unknown word %s; it takes the words of dapple-check(1), such as exitcode=66",
         std::string(wrong).c_str());
  }
  return options.exit_code;
}

// The notes are "begin PID 0" when a process has loaded the emulator, and "end PID COUNT" with the number of its
// findings. "kept" stands for "end" if their texts are not on dapple-run's own standard error.
Emulation read_emulation(const NotesFile& notes) {
  Emulation emulation;
  bool began = false;
  std::set<long> open;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(notes.name(), "re"), fclose);
  char word[16];
  long process;
  long count;
  long kept = 0;
  while (file != nullptr && fscanf(file.get(), "%15s %ld %ld", word, &process, &count) == 3) {
    if (strcmp(word, "begin") == 0) {
      began = true;
      open.insert(process);
    } else if (const bool is_kept = strcmp(word, "kept") == 0; is_kept || strcmp(word, "end") == 0) {
      open.erase(process);
      emulation.findings += count;
      if (is_kept) kept += count;
    }
  }
  emulation.complete = began && open.empty();
  if (kept > 0) {
    say("the program's processes have reported missing syncs (%ld) to another place than this standard error; with "
        "--check, dapple-run prints the reports",
        kept);
  }
  if (!began) {
    say("nothing was checked: no RDMA device was opened through a libibverbs that the emulator can reach");
  } else if (!open.empty()) {
    std::string processes;
    for (const long each : open) processes += (processes.empty() ? "" : " ") + std::to_string(each);
    say("process %s ended without its report (_exit, exec, or a signal): its findings are not known",
        processes.c_str());
  }
  return emulation;
}

int verdict_of(const Emulation& emulation, int check_exit, int code) {
  // An end by a signal is passed on as such.
  if (check_exit == 0 || code > 128) return code;
  if (emulation.findings > 0) return check_exit;
  return code == 0 && !emulation.complete ? check_exit : code;
}

int run_checked(int check_exit, void (*execute)(void* argument), void* argument) {
  const NotesFile notes(kEmulationNotes);
  const int code = run_child(execute, argument);
  return verdict_of(read_emulation(notes), check_exit, code);
}

}  // namespace dapple::run
