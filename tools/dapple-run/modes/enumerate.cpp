// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/modes/enumerate.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <vector>

#include "provider/common/clock.hpp"
#include "provider/soft/faults/fault_points.hpp"
#include "tools/dapple-run/findings/findings.hpp"
#include "tools/dapple-run/modes/hang.hpp"
#include "tools/dapple-run/process/child.hpp"
#include "tools/dapple-run/process/fail.hpp"
#include "tools/dapple-run/process/memory_file.hpp"

namespace dapple::run {
namespace {

constexpr double kFactor = 5;
constexpr double kAtLeast = 5;     // seconds
constexpr long kLook = 5'000'000;  // nanoseconds
constexpr size_t kMaxSaid = 100;

double now() {
  return static_cast<double>(now_ns()) / 1e9;
}

struct Ending {
  enum class Kind { kExit, kSignal, kHang } kind = Kind::kExit;
  int value = 0;  // the exit code, or the signal
  double seconds = 0;
  std::string said;                     // its last line
  std::vector<nlohmann::json> reports;  // of a hang

  bool is_good() const { return kind == Kind::kExit; }
  std::string text() const {
    if (kind == Kind::kHang) return "hang";
    if (kind == Kind::kSignal) return std::string("crash: ") + strsignal(value);
    return value == 0 ? "0" : "error " + std::to_string(value);
  }
};

// The last line of the output.
std::string last_line(int fd) {
  char bytes[512];
  const off_t size = lseek(fd, 0, SEEK_END);
  const off_t from = size > static_cast<off_t>(sizeof bytes) ? size - static_cast<off_t>(sizeof bytes) : 0;
  const ssize_t got = pread(fd, bytes, sizeof bytes, from);
  std::string_view text(bytes, got > 0 ? static_cast<size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  text.remove_prefix(text.rfind('\n') + 1);
  std::string line;
  for (const char letter : text.substr(0, kMaxSaid)) line += letter >= ' ' && letter <= '~' ? letter : ' ';
  return line;
}

constexpr int kEndings[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

volatile pid_t group = 0;  // of the program that runs, or 0

// The group's processes do not get a terminal's signals.
void end_with_group(int signal_number) {
  if (group > 0) kill(-group, SIGKILL);
  raise(signal_number);  // SA_RESETHAND: this ends dapple-run
}

void watch_signals() {
  struct sigaction action = {};
  action.sa_handler = end_with_group;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal_number : kEndings) {
    struct sigaction found = {};
    sigaction(signal_number, nullptr, &found);
    if (found.sa_handler != SIG_IGN) sigaction(signal_number, &action, nullptr);
  }
}

// The child and all processes that it starts are one process group, so that run() can kill all of them.
pid_t start(int output, void (*execute)(void*), void* argument) {
  sigset_t endings;
  sigset_t before;
  sigemptyset(&endings);
  for (const int signal_number : kEndings) sigaddset(&endings, signal_number);
  sigprocmask(SIG_BLOCK, &endings, &before);
  const pid_t child = fork_awaited();
  setpgid(child, child);
  if (child > 0) group = child;
  if (child == 0) group = 0;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child > 0) return child;
  const int input = open("/dev/null", O_RDONLY);
  if (input < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
    _exit(kCannotRun);
  execute(argument);
  _exit(kCannotRun);
}

Ending run(double timeout, void (*execute)(void*), void* argument) {
  const MemoryFile output("dapple-run-output");
  // A named file would stay behind a run that a signal ends.
  const MemoryFile notes("dapple-run-notes");
  setenv(kHangRecords, notes.path().c_str(), 1);
  HangJudge judge;
  const double begin = now();
  const pid_t child = start(output.fd(), execute, argument);
  int status = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0 && (timeout == 0 || now() - begin < timeout)) {
    const timespec look = {0, kLook};
    nanosleep(&look, nullptr);
  }
  Ending ending;
  ending.seconds = now() - begin;
  ending.said = last_line(output.fd());
  if (ended == 0) {
    judge.explain();
    ending.reports = read_findings(notes.path().c_str()).reports;
  }
  kill(-child, SIGKILL);
  if (ended <= 0) status = await(child);
  group = 0;
  if (ended == 0) {
    ending.kind = Ending::Kind::kHang;
  } else if (WIFSIGNALED(status)) {
    ending.kind = Ending::Kind::kSignal;
    ending.value = WTERMSIG(status);
  } else {
    ending.value = WEXITSTATUS(status);
  }
  return ending;
}

// A call in a program, whatever process of it makes it.
struct CallSite {
  std::string program, verb, where;
  uint64_t stack;
  uint64_t calls;  // the most of one process
};

std::vector<CallSite> sites_of(const soft::FaultNotes& notes) {
  std::map<std::tuple<std::string, std::string, uint64_t>, CallSite> found;
  for (const soft::FaultPoint& point : notes.points) {
    if (point.state.load() != soft::PointState::kComplete) continue;
    const auto text = [](const auto& field) { return std::string(field, strnlen(field, sizeof field)); };
    CallSite site = {text(point.program), text(point.verb), text(point.place), point.stack, point.calls.load()};
    const auto [known, is_new] = found.try_emplace({site.program, site.verb, site.stack}, site);
    if (!is_new && known->second.calls < site.calls) known->second.calls = site.calls;
  }
  std::vector<CallSite> sites;
  sites.reserve(found.size());
  for (const auto& [key, site] : found) sites.push_back(site);
  return sites;
}

// An error that the call or the completion may end with.
const char* error_for(const CallSite& site) {
  const std::string_view verb = site.verb;
  if (verb == "completion") return site.where.starts_with("RECV") ? "WR_FLUSH_ERR" : "RETRY_EXC_ERR";
  for (const std::string_view ending : {"ibv_destroy_", "ibv_dealloc_", "ibv_dereg_"}) {
    if (verb.starts_with(ending)) return "EBUSY";
  }
  for (const std::string_view looking : {"ibv_query_", "ibv_modify_", "ibv_poll_"}) {
    if (verb.starts_with(looking)) return "EIO";
  }
  if (verb == "rdma_bind_addr" || verb == "rdma_listen") return "EADDRINUSE";
  if (verb == "rdma_resolve_addr") return "ENODEV";
  return "ENOMEM";
}

// Tells whether a frame has a line of the program, not of the C library or a header of the system.
bool is_programs(const nlohmann::json& frame) {
  const std::string module = frame.value("module", ""), source = frame.value("source", "");
  return frame.value("line", 0) != 0 && module.find("/libc.so") == std::string::npos &&
         source.find("/usr/include/") != 0;
}

// A report with the program's lines of each of its stacks.
void print_report(const nlohmann::json& report) {
  printf("%-16s   %s: %s\n", "", report.value("kind", "").c_str(), report.value("text", "").c_str());
  for (const nlohmann::json& site : report.value("places", nlohmann::json::array())) {
    std::string lines;
    for (const nlohmann::json& frame : site.value("frames", nlohmann::json::array())) {
      if (!is_programs(frame)) continue;
      const std::string source = frame.value("source", "");
      lines += (lines.empty() ? " " : " < ") + frame.value("function", "") + " at " +
               source.substr(source.rfind('/') + 1) + ":" + std::to_string(frame.value("line", 0));
    }
    if (!lines.empty()) printf("%-16s     %s:%s\n", "", site.value("title", "").c_str(), lines.c_str());
  }
}

// If some reports have a cause, only those.
void print_reports(const std::vector<nlohmann::json>& reports) {
  const auto is_error = [](const nlohmann::json& report) { return report.value("level", "") == "error"; };
  const bool has_errors = std::any_of(reports.begin(), reports.end(), is_error);
  for (const nlohmann::json& report : reports) {
    if (!has_errors || is_error(report)) print_report(report);
  }
}

void print_row(const CallSite& site, uint64_t call, const Ending& ending) {
  printf("%-16s %-22s %5llu of %-7llu %-13s %-24s %6.1f s  %s\n", site.program.c_str(), site.verb.c_str(),
         static_cast<unsigned long long>(call), static_cast<unsigned long long>(site.calls), error_for(site),
         ending.text().c_str(), ending.seconds, site.where.c_str());
  if (!ending.said.empty()) printf("%-16s   %s\n", "", ending.said.c_str());
  print_reports(ending.reports);
  fflush(stdout);
}

}  // namespace

int enumerate(const EnumerateOptions& options, void (*execute)(void* argument), void* argument) {
  watch_signals();
  const MemoryFile file("dapple-fault-points", sizeof(soft::FaultNotes));
  auto& notes = *static_cast<soft::FaultNotes*>(file.memory());
  notes.wants_points.store(1);
  const char* given = getenv("DAPPLE_FAULTS");
  const std::string faults = given == nullptr || given[0] == '\0' ? "" : std::string(given) + ",";
  if (!options.program.empty()) setenv("DAPPLE_FAULTS_IN", options.program.c_str(), 1);
  setenv("DAPPLE_FAULT_POINTS", file.path().c_str(), 1);
  say("the first run, without a failing call");
  const Ending first = run(options.timeout, execute, argument);
  unsetenv("DAPPLE_FAULT_POINTS");
  print_reports(first.reports);
  fflush(stdout);
  if (first.kind != Ending::Kind::kExit || first.value != 0)
    fail(kCannotRun, "without a failing call the program ends with: %s (%s)", first.text().c_str(), first.said.c_str());
  const std::vector<CallSite> sites = sites_of(notes);
  if (sites.empty()) fail(kCannotRun, "no call was seen: the program opens no software device");

  std::vector<std::pair<const CallSite*, uint64_t>> calls;
  for (const CallSite& site : sites) {
    calls.emplace_back(&site, 1);
    if (site.calls > 1) calls.emplace_back(&site, site.calls);
  }
  const double timeout = options.timeout > 0 ? options.timeout : kFactor * first.seconds + kAtLeast;
  printf("%-16s %-22s %-16s %-13s %-24s %8s  %s\n", "program", "function", "call", "error", "ended", "after", "from");
  size_t bad = 0, done = 0;
  for (const auto& [site, call] : calls) {
    char fault[128];
    snprintf(fault, sizeof fault, "%s#%llx@%llu=%s", site->verb.c_str(), static_cast<unsigned long long>(site->stack),
             static_cast<unsigned long long>(call), error_for(*site));
    setenv("DAPPLE_FAULTS", (faults + fault).c_str(), 1);
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%zu of %zu: %s ...\r", ++done, calls.size(), site->verb.c_str());
    const Ending ending = run(timeout, execute, argument);
    if (!ending.is_good()) bad++;
    print_row(*site, call, ending);
  }
  printf("%zu calls and completions from %zu places: %zu crashes and hangs\n", calls.size(), sites.size(), bad);
  return fflush(stdout) == 0 && bad == 0 ? 0 : 1;
}

}  // namespace dapple::run
