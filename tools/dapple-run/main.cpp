// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dapple-run [OPTION...] PROGRAM [ARG...]: runs an RDMA program that does not know dapple with the software device, and
// with dapple's overlay on every device that it opens. With --env it prints the environment for that. See --help.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/dapple-run/check.hpp"
#include "tools/dapple-run/checked_run.hpp"
#include "tools/dapple-run/enumerate.hpp"
#include "tools/dapple-run/fail.hpp"
#include "tools/dapple-run/libraries.hpp"
#include "tools/dapple-run/program.hpp"
#include "tools/dapple-run/shell.hpp"

namespace dapple::run {
namespace {

constexpr char kHelp[] = R"help(usage: dapple-run [OPTION...] [--] PROGRAM [ARG...]
       eval "$(dapple-run --env [OPTION...])"

Runs PROGRAM, and the programs that it starts, with software RoCEv2 devices beside the kernel's RDMA devices: one for each
network interface (dapple0, dapple1, ...). Every RDMA device that they open through libibverbs or librdmacm has dapple's
overlay. PROGRAM needs no change and no rebuild. The second form does this for every program that a shell starts afterwards,
and needs no PROGRAM.

      --env       print the environment as shell commands
  -n, --no-device the overlay alone, without the software devices
  -e, --emulate   let every device behave like one that is not cache-coherent, and report missing syncs (not on iWARP)
  -w, --watch     --emulate, and report the first read of bytes that a peer wrote and no sync followed, with its place in
                  PROGRAM (x86-64; slow; system calls that get such memory fail)
      --check     report mistakes in the use of the software devices, such as a key that is deregistered: dapple-check(1)
      --check=strict  also report races with peers in a program that is built with ThreadSanitizer
      --json FILE, --sarif FILE, --junit FILE
                  --check, and write its reports to a file
      --faults F  make packets get lost, or calls fail, on the software devices: F has words of DAPPLE_FAULTS, which
                  dapple-soft(7) lists, or is the name of a file with such words
      --seed N    the number that decides all random choices of the software devices
      --trace N   write the calls, completions and events of the software devices to N.jsonl, and their packets to N.pcap
      --enumerate let the first and the last call of a verb from each place in PROGRAM fail, each in a run of its own, and
                  print how each run ends
      --in NAME   with --faults or --enumerate: planned failures occur only in programs of this name; faults of packets and
                  order=random occur in all programs
      --timeout S with --enumerate: seconds after which a run is a hang
  -v, --verbose   report on standard error which devices got the overlay
  -h, --help      print this

The exit code is PROGRAM's, or
  1    with --enumerate: a run crashed or hung
  2    wrong options
  66   with --check: an error was reported, or nothing was checked
  66   with --emulate: a sync is missing, or nothing was checked because no RDMA device was opened or a process ended without
       its report; DAPPLE_CHECK=exitcode=N in the environment sets another code, and 0 keeps PROGRAM's
  126  PROGRAM cannot be run this way, or with --enumerate its first run ends with another code than 0 or opens no software
       device; one line on standard error gives the reason
  127  PROGRAM does not exist
)help";

struct Options {
  std::string verbose = "0";
  std::string emulate = "0";
  bool device = true;
  bool print_environment = false;
  bool enumerate = false;
  bool check = false;
  std::vector<const char*> variables;  // set by options, for --env
  ReportFiles reports;
  EnumerateOptions runs;
  char** command = nullptr;
};

std::string environment_or(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value != nullptr && value[0] != '\0' ? value : otherwise;
}

const char* value_of(const std::string& option, char**& argument) {
  if (*++argument == nullptr) fail(kWrongUse, "%s needs a value; see dapple-run --help", option.c_str());
  return *argument;
}

double seconds_of(const char* text) {
  char* end = nullptr;
  const double seconds = strtod(text, &end);
  if (end == text || *end != '\0' || !(seconds > 0 && seconds < 1e6))
    fail(kWrongUse, "--timeout needs a number of seconds, not %s", text);
  return seconds;
}

// The words of a file stand on lines or between commas; a line that begins with # is a comment.
std::string words_of(std::istream& file) {
  std::string words;
  for (std::string line; std::getline(file, line);) {
    std::string_view text = line;
    while (!text.empty() && (text.back() == ' ' || text.back() == ',')) text.remove_suffix(1);
    if (text.empty() || text.front() == '#') continue;
    words += (words.empty() ? "" : ",") + std::string(text);
  }
  return words;
}

void set_variable(Options& options, const char* name, const char* value) {
  setenv(name, value, 1);
  options.variables.push_back(name);
}

void set_faults(Options& options, const char* given) {
  std::string words = given;
  if (words.find('=') == std::string::npos) {
    std::ifstream file(given);
    if (!file) fail(kWrongUse, "--faults: %s is neither a word with = nor a readable file", given);
    words = words_of(file);
  }
  set_variable(options, "DAPPLE_FAULTS", words.c_str());
}

void set_seed(Options& options, const char* given) {
  uint64_t number = 0;
  const char* end = given + strlen(given);
  const auto [stop, error] = std::from_chars(given, end, number);
  if (error != std::errc() || stop != end) fail(kWrongUse, "--seed needs a number of 64 bits, not %s", given);
  set_variable(options, "DAPPLE_SEED", given);
}

// Empties both files. Their paths are absolute, because programs may change their folder.
void set_trace(Options& options, const char* given) {
  const std::pair<const char*, const char*> files[] = {{"DAPPLE_TRACE", ".jsonl"}, {"DAPPLE_PCAP", ".pcap"}};
  for (const auto& [variable, ending] : files) {
    const std::string path = std::filesystem::absolute(given).string() + ending;
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) fail(kWrongUse, "--trace: %s cannot be written: %s", path.c_str(), strerror(errno));
    close(file);
    set_variable(options, variable, path.c_str());
  }
}

// Null for any other option.
std::string* report_file(ReportFiles& files, const std::string& option) {
  if (option == "--json") return &files.json;
  if (option == "--sarif") return &files.sarif;
  return option == "--junit" ? &files.junit : nullptr;
}

// Parsing stops at the program's name; the program's own options are left alone.
Options parse(char** argument) {
  Options options;
  options.verbose = environment_or("DAPPLE_VERBOSE", "0");
  options.emulate = environment_or("DAPPLE_EMULATE", "0");
  for (; *argument != nullptr && **argument == '-'; ++argument) {
    const std::string option = *argument;
    if (option == "--") {
      ++argument;
      break;
    }
    if (option == "-h" || option == "--help") {
      fputs(kHelp, stdout);
      exit(fflush(stdout) == 0 ? 0 : 1);
    } else if (option == "-e" || option == "--emulate") {
      if (options.emulate == "0") options.emulate = "1";
    } else if (option == "-w" || option == "--watch") {
      options.emulate = "1,watch";
    } else if (option == "-v" || option == "--verbose") {
      options.verbose = "1";
    } else if (option == "-n" || option == "--no-device") {
      options.device = false;
    } else if (option == "--faults") {
      set_faults(options, value_of(option, argument));
    } else if (option == "--seed") {
      set_seed(options, value_of(option, argument));
    } else if (option == "--trace") {
      set_trace(options, value_of(option, argument));
    } else if (option == "--check" || option == "--check=strict") {
      options.check = true;
      if (option != "--check") setenv("DAPPLE_CHECK", (environment_or("DAPPLE_CHECK", "") + ":strict=1").c_str(), 1);
    } else if (std::string* file = report_file(options.reports, option); file != nullptr) {
      options.check = true;
      *file = value_of(option, argument);
    } else if (option == "--enumerate") {
      options.enumerate = true;
    } else if (option == "--in") {
      options.runs.program = value_of(option, argument);
      set_variable(options, "DAPPLE_FAULTS_IN", options.runs.program.c_str());
    } else if (option == "--timeout") {
      options.runs.timeout = seconds_of(value_of(option, argument));
    } else if (option == "--env") {
      options.print_environment = true;
    } else {
      fail(kWrongUse, "unknown option %s; see dapple-run --help", option.c_str());
    }
  }
  if (options.enumerate && (options.emulate != "0" || options.print_environment || !options.device))
    fail(kWrongUse, "--enumerate cannot be combined with --emulate, --watch, --env or --no-device");
  if (options.check && (options.print_environment || !options.device || options.enumerate))
    fail(kWrongUse, "--check cannot be combined with --env, --no-device or --enumerate");
  if (options.print_environment) {
    if (*argument != nullptr) fail(kWrongUse, "--env runs no program, but %s was given", *argument);
    return options;
  }
  if (*argument == nullptr) fail(kWrongUse, "no program is given; see dapple-run --help");
  options.command = argument;
  return options;
}

struct Command {
  std::string path;
  char** arguments;
};

// Becomes the program. The shell runs a file without "#!", as when a shell starts it.
[[noreturn]] void execute(void* argument) {
  const Command& command = *static_cast<const Command*>(argument);
  execv(command.path.c_str(), command.arguments);
  if (errno == ENOEXEC) {
    std::vector<char*> shell = {const_cast<char*>("/bin/sh"), const_cast<char*>(command.path.c_str())};
    for (char** each = command.arguments + 1; *each != nullptr; ++each) shell.push_back(*each);
    shell.push_back(nullptr);
    execv(shell[0], shell.data());
  }
  fail(kCannotRun, "%s cannot be run: %s", command.path.c_str(), strerror(errno));
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

int main(char** arguments) {
  const Options options = parse(arguments + 1);
  const Libraries libraries = find_libraries();
  if (options.print_environment) {
    set_environment(options, libraries);
    for (const char* name : kVariables) print_assignment(name);
    for (const char* name : options.variables) print_assignment(name);
    return fflush(stdout) == 0 ? 0 : 1;
  }
  const Program program = find_program(options.command[0], libraries.overlay);
  Command command = {.path = program.path, .arguments = options.command};
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
  if (has_thread_sanitizer) fix_addresses(program.path);
  if (options.enumerate) return enumerate(options.runs, execute, &command);
  if (options.check) return run_with_check(options.reports, options.command[0], emulate, execute, &command);
  if (emulate) return run_checked(findings, execute, &command);
  execute(&command);
}

}  // namespace
}  // namespace dapple::run

int main(int, char** arguments) {
  return dapple::run::main(arguments);
}
