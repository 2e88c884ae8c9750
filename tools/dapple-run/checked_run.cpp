// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/checked_run.hpp"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "tools/dapple-run/fail.hpp"

namespace dapple::run {
namespace {

constexpr int kPassedOn[] = {SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};

volatile pid_t child = 0;

void pass_on(int signal_number) {
  const int saved = errno;
  if (child > 0) kill(child, signal_number);
  errno = saved;
}

void nothing(int) {}

void handle(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(signal_number, &action, nullptr);
}

// The file into which the processes write their notes. It disappears when the program has ended.
class Log {
 public:
  Log() {
    const char* folder = getenv("TMPDIR");
    name_ = std::string(folder != nullptr && folder[0] != '\0' ? folder : "/tmp") + "/dapple-run.XXXXXX";
    int fd = mkstemp(name_.data());
    if (fd >= 0) {
      close(fd);
      is_named_ = true;
    } else {
      // Even a whole container may be read-only. This process lives longer than the processes that write through its
      // descriptor.
      fd = memfd_create("dapple-run", MFD_CLOEXEC);
      if (fd < 0) fail(kCannotRun, "no space for a file in TMPDIR or in memory: %s", strerror(errno));
      name_ = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
    }
    setenv("DAPPLE_CHECK_LOG", name_.c_str(), 1);
  }
  ~Log() {
    if (is_named_) unlink(name_.c_str());
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  const char* name() const { return name_.c_str(); }

 private:
  std::string name_;
  bool is_named_ = false;
};

// The exit code of a program that ended with this one, from its processes' notes: "begin PID 0" when a process has
// loaded the emulator, "end PID COUNT" with the number of its findings.
int checked_code(int code, const Log& log, int check_exit) {
  bool began = false;
  long findings = 0;
  std::set<long> open;
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(log.name(), "re"), fclose);
  char word[16];
  long process;
  long count;
  while (file != nullptr && fscanf(file.get(), "%15s %ld %ld", word, &process, &count) == 3) {
    if (strcmp(word, "begin") == 0) {
      began = true;
      open.insert(process);
    } else if (strcmp(word, "end") == 0) {
      open.erase(process);
      findings += count;
    }
  }
  if (!began) {
    say("nothing was checked: no RDMA device was opened through a libibverbs that the emulator can reach");
  } else if (!open.empty()) {
    std::string processes;
    for (const long each : open) processes += (processes.empty() ? "" : " ") + std::to_string(each);
    say("process %s ended without its report (_exit, exec, or a signal): its findings are not known",
        processes.c_str());
  }
  // An end by a signal is passed on as such.
  if (check_exit == 0 || code > 128) return code;
  if (findings > 0) return check_exit;
  return code == 0 && (!began || !open.empty()) ? check_exit : code;
}

int wait_for_child() {
  int status = 0;
  // A signal that was passed on interrupts a wait.
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int check_exit_code() {
  int code = 66;
  const char* given = getenv("DAPPLE_CHECK");
  std::string_view words = given != nullptr ? given : "";
  while (!words.empty()) {
    const size_t end = words.find_first_of(", \t\n");
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(end == words.npos ? words.size() : end + 1);
    if (word.empty()) continue;
    constexpr std::string_view kExitCode = "exitcode=";
    const std::string_view digits = word.starts_with(kExitCode) ? word.substr(kExitCode.size()) : "";
    const bool number = !digits.empty() && digits.size() <= 3 && digits.find_first_not_of("0123456789") == digits.npos;
    if (!number || atoi(std::string(digits).c_str()) > 255) {
      fail(kWrongUse, "DAPPLE_CHECK has the unknown word %s; it takes exitcode=N, from 0 to 255",
           std::string(word).c_str());
    }
    code = atoi(std::string(digits).c_str());
  }
  return code;
}

int run_checked(int findings, void (*execute)(void* argument), void* argument) {
  const Log log;
  // No signal is lost between the child's start and our handlers.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  child = fork();
  if (child < 0) fail(kCannotRun, "no process for the program: %s", strerror(errno));
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execute(argument);
    _exit(kCannotRun);
  }
  // A terminal sends these signals to both processes.
  handle(SIGINT, nothing);
  handle(SIGQUIT, nothing);
  for (const int signal_number : kPassedOn) handle(signal_number, pass_on);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return checked_code(wait_for_child(), log, findings);
}

}  // namespace dapple::run
