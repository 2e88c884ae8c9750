// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/options.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "provider/face/identity/profile_file.hpp"
#include "provider/gids/gid_plan.hpp"
#include "provider/protocol/identity_text.hpp"
#include "provider/system/owned_fd.hpp"
#include "tools/dapple-run/first_help.hpp"
#include "tools/dapple-run/modes/planned_faults.hpp"
#include "tools/dapple-run/process/elf_file.hpp"
#include "tools/dapple-run/process/fail.hpp"
#include "tools/dapple-run/world/netdevs.hpp"

namespace dapple::run {
namespace {

constexpr char kHelp[] = R"help(usage: dapple-run [OPTION...] [--] PROGRAM [ARG...]
       eval "$(dapple-run --env [OPTION...])"
       dapple-run --doctor

Runs PROGRAM, and the programs that it starts, with software RoCEv2 devices beside the kernel's RDMA devices: one for each
network interface (dapple0, dapple1, ...). Every RDMA device that they open through libibverbs or librdmacm has dapple's
overlay. PROGRAM needs no change and no rebuild. The second form does this for every program that a shell starts afterwards,
and needs no PROGRAM.

      --env       print the environment as shell commands
  -n, --no-device the overlay alone, without the software devices
  -e, --emulate   let every device behave like one that is not cache-coherent, and report missing syncs (not on iWARP)
  -w, --watch     --emulate, and report the first read of bytes that a peer wrote and no sync followed, with its place in
                  PROGRAM (x86-64; slow; system calls that get such memory fail)
      --as ID     give the software devices the names, vendor and limits of a NIC: ID is a profile that dapple-soft(7) lists,
                  or the path of your own, and words that replace its lines, such as connectx7,rate=200,numa=1.
                  connectx7:8 gives PROGRAM 8 devices with the addresses 127.0.0.1 to 127.0.0.8, and no others
      --check     report mistakes in the use of the software devices, such as a key that is deregistered: dapple-check(1)
      --check=races   also report requests of several programs of this host to the same bytes that no message orders
      --check=strict  the same, and also report races with peers in a program that is built with ThreadSanitizer
      --explain   the part of --check that costs little: report why a call of a verb fails, with the wrong value and the remedy
      --json FILE, --sarif FILE, --junit FILE
                  --check or --explain, --check if none is given, and write the reports to a file
      --hang TIME when nothing gets on for TIME, such as 5s: report what each thread waits for and why nothing comes, and end
                  PROGRAM
      --faults F  make packets get lost, or calls fail, on the software devices: F has words of DAPPLE_FAULTS, which
                  dapple-soft(7) lists, or is the name of a file with such words
      --seed N    the number that decides all random choices of the software devices
      --gids FILE the GIDs of the software devices stand at the indexes that they have on a real machine: FILE has what
                  show_gids printed there
      --trace N   write the calls, completions and events of the software devices to N.jsonl, and their packets to N.pcap
      --enumerate let the first and the last call of a verb from each place in PROGRAM fail, each in a run of its own, and
                  print how each run ends
      --in NAME   with --faults or --enumerate: planned failures occur only in programs of this name; faults of packets and
                  of orders occur in all programs
      --mount     mount the files of the software devices over /sys and /dev, for programs that PROGRAM starts and into which no
                  library can be loaded; without this option only if PROGRAM itself is such a program
      --alone     give PROGRAM a network namespace of its own, with one software device on its lo: programs that run at the
                  same time share nothing. PROGRAM has no other network
      --doctor    say in ten lines what works on this machine, and what does not and why
      --timeout S with --enumerate: seconds after which a run is a hang
  -v, --verbose   report on standard error which devices got the overlay
  -h, --help      print this
      --version   print the version

The exit code is PROGRAM's, or
  1    with --enumerate: a run crashed or hung; with --doctor: a line says FAILS
  2    wrong options
  66   with --check: an error was reported, or nothing was checked; with --hang: PROGRAM hung
  66   with --emulate: a sync is missing, or nothing was checked because no RDMA device was opened or a process ended without
       its report; DAPPLE_CHECK=exitcode=N in the environment sets another code, and 0 keeps PROGRAM's
  126  PROGRAM cannot be run this way, or with --enumerate its first run ends with another code than 0 or opens no software
       device; one line on standard error gives the reason
  127  PROGRAM does not exist
)help";

std::string environment_or(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value != nullptr && value[0] != '\0' ? value : otherwise;
}

[[noreturn]] void print(const char* text) {
  const bool written = fputs(text, stdout) >= 0 && fflush(stdout) == 0;
  exit(written ? 0 : 1);
}

// A word of the command line: an option, and its value if both are joined by "=".
struct OptionWord {
  std::string option;
  const char* joined = nullptr;
};

OptionWord split(const char* word) {
  static constexpr std::string_view kWithValue[] = {"--faults", "--as",    "--seed", "--gids", "--trace",  "--json",
                                                    "--sarif",  "--junit", "--hang", "--in",   "--timeout"};
  const char* const sign = strchr(word, '=');
  const std::string_view option(word, sign == nullptr ? strlen(word) : static_cast<size_t>(sign - word));
  if (sign == nullptr || std::ranges::find(kWithValue, option) == std::end(kWithValue)) return {word};
  return {std::string(option), sign + 1};
}

// Behind "=", or the next word. It is empty if a job has not set its variable.
const char* value_of(const OptionWord& word, char**& argument) {
  const char* const value = word.joined != nullptr ? word.joined : *++argument;
  if (value == nullptr || *value == '\0')
    fail(kWrongUse, "%s needs a value; see dapple-run --help", word.option.c_str());
  return value;
}

// Programs may change their folder.
std::string absolute(const char* option, std::string_view path) {
  std::error_code error;
  std::string result = std::filesystem::absolute(path, error).string();
  if (error)
    fail(kWrongUse, "%s: %.*s has no path: %s", option, static_cast<int>(path.size()), path.data(),
         error.message().c_str());
  return result;
}

// A user who forgets the value of an option gives the program in its place.
bool is_program(const char* path) {
  const ElfFile file(path);
  return file.is_elf() || !file.script_interpreter().empty();
}

double seconds_of(const char* text) {
  char* end = nullptr;
  const double seconds = strtod(text, &end);
  if (end == text || *end != '\0' || !(seconds > 0 && seconds < 1e6))
    fail(kWrongUse, "--timeout needs a number of seconds, not %s", text);
  return seconds;
}

// "5s", "500ms", "2min"; "5" is seconds.
double time_of(const std::string& option, const char* text) {
  char* end = nullptr;
  const double number = strtod(text, &end);
  const std::string_view unit = end;
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "ms" ? 0.001 : unit == "min" ? 60 : 0;
  const double seconds = number * factor;
  if (end == text || !(seconds >= 0.1 && seconds < 1e6))
    fail(kWrongUse, "%s needs a time such as 5s, 500ms or 2min, 100ms at least, not %s", option.c_str(), text);
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
    if (is_program(given)) {
      fail(kWrongUse, "--faults: %s is a program; the faults stand before it: dapple-run --faults drop=0.01 %s", given,
           given);
    }
    std::ifstream file(given);
    if (!file) {
      fail(kWrongUse, "--faults: %s is neither a word with = nor a readable file; for example: --faults drop=0.01",
           given);
    }
    words = words_of(file);
  }
  if (!words.empty()) check_faults("--faults", words.c_str());
  set_variable(options, "DAPPLE_FAULTS", words.c_str());
}

// A wrong identity would leave the program without a device.
void set_identity(Options& options, const char* given) {
  const std::string_view all = given;
  const std::string_view name = soft::identity_name(all).profile;
  std::string identity = given;
  if (face::is_path(name)) {
    if (is_program(std::string(name).c_str())) fail(kWrongUse, "--as: %s is a program, not a profile", given);
    identity = absolute("--as", name) + std::string(all.substr(name.size()));
  }
  face::Identity read;
  soft::Problem problem;
  if (!face::read_identity_from_files(identity, read, problem)) fail(kWrongUse, "--as: %s", problem.line);
  if (read.rails.count != 0 && !face::check_rails(read.rails, netdevs(), problem))
    fail(kWrongUse, "--as: %s", problem.line);
  if (identity.size() >= soft::kIdentitySize)
    fail(kWrongUse, "--as: the value has more than %zu characters", soft::kIdentitySize - 1);
  set_variable(options, "DAPPLE_AS", identity.c_str());
  options.as = true;
}

// dappled reads the file, too.
void set_gids(Options& options, const char* given) {
  const soft::OwnedFd file(open(given, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) fail(kWrongUse, "--gids: %s cannot be read: %s", given, strerror(errno));
  soft::Problem problem;
  const auto plan = std::make_unique<gids::GidPlan>();
  if (!gids::read_gid_file(file.get(), given, *plan, problem)) fail(kWrongUse, "--gids: %s", problem.line);
  set_variable(options, "DAPPLE_GIDS", absolute("--gids", given).c_str());
}

void set_seed(Options& options, const char* given) {
  uint64_t number = 0;
  const char* end = given + strlen(given);
  const auto [stop, error] = std::from_chars(given, end, number);
  if (error != std::errc() || stop != end) fail(kWrongUse, "--seed needs a number of 64 bits, not %s", given);
  set_variable(options, "DAPPLE_SEED", given);
}

// "-" is standard output in other tools, but there the program writes.
void refuse_standard_output(const char* option, const char* given) {
  if (strcmp(given, "-") == 0)
    fail(kWrongUse, "%s: standard output is the program's; name a file, or write ./- for a file of this name", option);
}

// The programs open the file again by its name, which a strict umask would forbid them.
void give_owner_rights(int file) {
  constexpr mode_t kRights = S_IRUSR | S_IWUSR;
  struct stat status;
  if (fstat(file, &status) == 0 && (status.st_mode & kRights) != kRights) fchmod(file, status.st_mode | kRights);
}

// Empties both files.
void set_trace(Options& options, const char* given) {
  refuse_standard_output("--trace", given);
  const std::pair<const char*, const char*> files[] = {{"DAPPLE_TRACE", ".jsonl"}, {"DAPPLE_PCAP", ".pcap"}};
  for (const auto& [variable, ending] : files) {
    const std::string path = absolute("--trace", given) + ending;
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) fail(kWrongUse, "--trace: %s cannot be written: %s", path.c_str(), strerror(errno));
    give_owner_rights(file);
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

void set_report(std::string& file, const std::string& option, const char* given) {
  refuse_standard_output(option.c_str(), given);
  if (is_program(given))
    fail(kWrongUse, "%s: %s is a program, which the report would overwrite", option.c_str(), given);
  file = given;
}

// --check explains calls, too.
void choose_reports(Options& options) {
  if (!options.reports.empty() && !options.explain) options.check = true;
  if (options.check) options.explain = false;
  if (options.explain) {
    set_variable(options, "DAPPLE_EXPLAIN", "1");
  } else if (options.check) {
    unsetenv("DAPPLE_EXPLAIN");
  }
}

void check_combinations(const Options& options) {
  if (options.enumerate && (options.emulate != "0" || options.print_environment || !options.device))
    fail(kWrongUse, "--enumerate cannot be combined with --emulate, --watch, --env or --no-device");
  if (options.check && (options.print_environment || !options.device || options.enumerate))
    fail(kWrongUse, "--check cannot be combined with --env, --no-device or --enumerate");
  if (options.doctor && (options.print_environment || !options.device || options.check || options.enumerate))
    fail(kWrongUse, "--doctor cannot be combined with --env, --no-device, --check or --enumerate");
  if (options.hang > 0 && (options.print_environment || !options.device || options.enumerate || options.doctor)) {
    fail(kWrongUse, "--hang cannot be combined with --env, --no-device, --doctor or --enumerate, which has --timeout");
  }
  if (options.explain && !options.device) fail(kWrongUse, "--explain cannot be combined with --no-device");
  if (!options.reports.empty() && (options.print_environment || options.enumerate))
    fail(kWrongUse, "--json, --sarif and --junit cannot be combined with --env or --enumerate");
  if (options.reports.has_one_name_twice())
    fail(kWrongUse, "--json, --sarif and --junit need files of different names");
  if (options.as && !options.device) fail(kWrongUse, "--as cannot be combined with --no-device");
  if (options.mount && (options.print_environment || !options.device || options.enumerate))
    fail(kWrongUse, "--mount cannot be combined with --env, --no-device or --enumerate");
  if (options.alone && (options.print_environment || options.doctor || !options.device))
    fail(kWrongUse, "--alone cannot be combined with --env, --doctor or --no-device");
  if (options.runs.timeout != 0 && !options.enumerate) fail(kWrongUse, "--timeout needs --enumerate");
  if (!options.runs.program.empty() && !options.enumerate && environment_or("DAPPLE_FAULTS", "").empty()) {
    fail(kWrongUse, "--in needs the faults that it confines: --enumerate, or --faults ibv_post_send@1=ENOMEM --in %s",
         options.runs.program.c_str());
  }
}

}  // namespace

Options parse(char** words) {
  Options options;
  char** argument = words;
  options.verbose = environment_or("DAPPLE_VERBOSE", "0");
  options.emulate = environment_or("DAPPLE_EMULATE", "0");
  std::string last_option;
  for (; *argument != nullptr && **argument == '-'; ++argument) {
    last_option = *argument;
    const OptionWord word = split(*argument);
    const std::string& option = word.option;
    if (option == "--") {
      ++argument;
      break;
    }
    if (option == "-h" || option == "--help") {
      print(kHelp);
    } else if (option == "--version") {
      print(DAPPLE_VERSION "\n");
    } else if (option == "-e" || option == "--emulate") {
      if (options.emulate == "0") options.emulate = "1";
    } else if (option == "-w" || option == "--watch") {
      options.emulate = "1,watch";
    } else if (option == "-v" || option == "--verbose") {
      options.verbose = "1";
    } else if (option == "-n" || option == "--no-device") {
      options.device = false;
    } else if (option == "--faults") {
      set_faults(options, value_of(word, argument));
    } else if (option == "--as") {
      set_identity(options, value_of(word, argument));
    } else if (option == "--seed") {
      set_seed(options, value_of(word, argument));
    } else if (option == "--gids") {
      set_gids(options, value_of(word, argument));
    } else if (option == "--trace") {
      set_trace(options, value_of(word, argument));
    } else if (option == "--check" || option == "--check=races" || option == "--check=strict") {
      options.check = true;
      if (option != "--check")
        setenv("DAPPLE_CHECK", (environment_or("DAPPLE_CHECK", "") + ":" + option.substr(8) + "=1").c_str(), 1);
    } else if (std::string* file = report_file(options.reports, option); file != nullptr) {
      set_report(*file, option, value_of(word, argument));
    } else if (option == "--explain") {
      options.explain = true;
    } else if (option == "--hang") {
      options.hang = time_of(option, value_of(word, argument));
    } else if (option == "--mount") {
      options.mount = true;
    } else if (option == "--alone") {
      options.alone = true;
    } else if (option == "--enumerate") {
      options.enumerate = true;
    } else if (option == "--in") {
      options.runs.program = value_of(word, argument);
      set_variable(options, "DAPPLE_FAULTS_IN", options.runs.program.c_str());
    } else if (option == "--timeout") {
      options.runs.timeout = seconds_of(value_of(word, argument));
    } else if (option == "--env") {
      options.print_environment = true;
    } else if (option == "--doctor" || option == "--doctor=device") {
      options.doctor = true;
      options.doctor_device = option != "--doctor";
    } else if (option.starts_with("--check=")) {
      fail(kWrongUse, "--check has the forms --check, --check=races and --check=strict, not %s", option.c_str());
    } else {
      fail(kWrongUse, "unknown option %s; see dapple-run --help", option.c_str());
    }
  }
  choose_reports(options);
  check_combinations(options);
  if (options.doctor) {
    if (*argument != nullptr) fail(kWrongUse, "--doctor runs no program, but %s was given", *argument);
    return options;
  }
  if (options.print_environment) {
    if (*argument != nullptr) fail(kWrongUse, "--env runs no program, but %s was given", *argument);
    return options;
  }
  if (*argument == nullptr) {
    const char* const last = argument[-1];
    // `last` may be dapple-run's own name.
    if (words == argument) first_help();
    if (last_option.empty() || last_option == last) fail(kWrongUse, "no program is given; see dapple-run --help");
    fail(kWrongUse, "no program is given: %s is the value of %s; see dapple-run --help", last, last_option.c_str());
  }
  options.command = argument;
  return options;
}

}  // namespace dapple::run
