// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-run [OPTION...] PROGRAM [ARG...]: runs an RDMA program that does not know dapple with the software device, and
// with dapple's overlay on every device that it opens. With --env it prints the environment for that. See --help.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "tools/dapple-run/doctor/doctor.hpp"
#include "tools/dapple-run/modes/check.hpp"
#include "tools/dapple-run/modes/checked_run.hpp"
#include "tools/dapple-run/modes/enumerate.hpp"
#include "tools/dapple-run/modes/planned_faults.hpp"
#include "tools/dapple-run/options.hpp"
#include "tools/dapple-run/process/child.hpp"
#include "tools/dapple-run/process/elf_file.hpp"
#include "tools/dapple-run/process/fail.hpp"
#include "tools/dapple-run/process/libraries.hpp"
#include "tools/dapple-run/process/program.hpp"
#include "tools/dapple-run/process/shell.hpp"
#include "tools/dapple-run/world/mounts.hpp"
#include "tools/dapple-run/world/namespaces.hpp"
#include "tools/report/out_of_memory.hpp"

namespace dapple::run {
namespace {

struct Command {
  std::string path;
  char** arguments;
};

// Says why execv() has failed.
[[noreturn]] void fail_to_run(const std::string& path, int error) {
  const std::string interpreter(ElfFile(path).script_interpreter());
  if (error == ENOENT && !interpreter.empty()) {
    const bool exists = access(interpreter.c_str(), F_OK) == 0;
    fail(kCannotRun,
         exists ? "%s cannot be run: a carriage return stands behind its interpreter %s"
                : "%s cannot be run: its interpreter %s does not exist",
         path.c_str(), interpreter.c_str());
  }
  fail(kCannotRun, "%s cannot be run: %s", path.c_str(), strerror(error));
}

// Becomes the program. The shell runs a text without "#!", as when a shell starts it.
[[noreturn]] void execute(void* argument) {
  const Command& command = *static_cast<const Command*>(argument);
  execv(command.path.c_str(), command.arguments);
  int error = errno;
  if (error == ENOEXEC && !ElfFile(command.path).is_elf()) {
    std::vector<char*> shell = {const_cast<char*>("/bin/sh"), const_cast<char*>(command.path.c_str())};
    for (char** each = command.arguments + 1; *each != nullptr; ++each) shell.push_back(*each);
    shell.push_back(nullptr);
    execv(shell[0], shell.data());
    error = errno;
  }
  fail_to_run(command.path, error);
}

constexpr const char* kVariables[] = {"LD_PRELOAD", "RDMAV_DRIVERS", "ASAN_OPTIONS", "DAPPLE_VERBOSE",
                                      "DAPPLE_EMULATE"};

// Sets kVariables.
void set_environment(const Options& options, const Libraries& libraries) {
  preload(libraries, options.device);
  let_address_sanitizer_come_later();
  setenv("DAPPLE_VERBOSE", options.verbose.c_str(), 1);
  setenv("DAPPLE_EMULATE", options.emulate.c_str(), 1);
}

// Mounts the devices' files for the programs that need it.
void show_device_files(const Options& options, const Program& program) {
  if (program.obstacle.empty() && !options.mount) return;
  const char* obstacle = program.obstacle.c_str();
  // Without a library, only the files of the devices can be had.
  if (!program.obstacle.empty() &&
      (!options.device || options.check || options.explain || options.enumerate || options.emulate != "0"))
    fail(kCannotRun, "%s", obstacle);
  std::string reason;
  if (mount_device_files(reason)) {
    // A statically linked program, such as an exporter in Go, seldom wants more.
    if (program.has_other_c_library) say("%s: it sees the files of the devices, and cannot open them", obstacle);
    return;
  }
  fail(kCannotRun, "%s%sits view of /sys cannot have the devices (%s); dapple-info --tree FOLDER writes their files",
       obstacle, program.obstacle.empty() ? "" : "; ", reason.c_str());
}

int main(char** arguments) {
  end_when_out_of_memory(kCannotRun);
  const Options options = parse(arguments + 1);
  Libraries libraries = find_libraries();
  if (options.doctor) return options.doctor_device ? doctor::examine_device() : doctor::examine(libraries);
  if (options.print_environment) {
    set_environment(options, libraries);
    for (const char* name : kVariables) print_assignment(name);
    for (const char* name : options.variables) print_assignment(name);
    return fflush(stdout) == 0 ? 0 : 1;
  }
  if (std::string reason; options.alone && !live_alone(reason)) fail(kCannotRun, "--alone: %s", reason.c_str());
  const Program program = find_program(options.command, libraries.overlay.file);
  if (!program.has_usual_loader) name_by_file(libraries);
  Command command = {.path = program.path, .arguments = options.command};
  show_device_files(options, program);
  const bool emulate = options.emulate != "0";
  const int findings = emulate ? check_exit_code() : 0;

  bool has_thread_sanitizer = program.has_thread_sanitizer, has_own_heap = program.has_own_heap;
#ifdef DAPPLE_SANITIZER_RUNTIME
  if (!program.has_address_sanitizer && !has_thread_sanitizer) {
    preload_sanitizer(DAPPLE_SANITIZER_RUNTIME);
    has_own_heap = true;
    has_thread_sanitizer = std::string_view(DAPPLE_SANITIZER_RUNTIME).find("libtsan") != std::string_view::npos;
  }
#endif
  preload_heap(libraries, options.check && !has_own_heap);
  set_environment(options, libraries);
  if (has_thread_sanitizer) prepare_for_thread_sanitizer(program.path);
  const PlannedFaults faults;
  if (options.enumerate) return enumerate(options.runs, execute, &command);
  if (options.check || !options.reports.empty() || options.hang > 0) {
    const CheckedRun run = {
        .program = options.command[0], .emulate = emulate, .is_checked = options.check, .hang = options.hang};
    return faults.say_missed(run_with_check(options.reports, run, execute, &command));
  }
  if (emulate) return faults.say_missed(run_checked(findings, execute, &command));
  if (faults.any()) return faults.say_missed(run_child(execute, &command));
  execute(&command);
}

}  // namespace
}  // namespace dapple::run

int main(int, char** arguments) {
  return dapple::run::main(arguments);
}
