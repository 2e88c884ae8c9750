// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/doctor/doctor.hpp"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "provider/system/problem.hpp"
#include "tools/dapple-run/doctor/daemon.hpp"
#include "tools/dapple-run/doctor/libraries_found.hpp"
#include "tools/dapple-run/doctor/system.hpp"
#include "tools/dapple-run/process/child.hpp"

namespace dapple::run::doctor {
namespace {

// A program that uses the devices: this one, with the libraries in its environment. It prints the line itself.
int examine_device_in_child(const Libraries& libraries) {
  preload(libraries, true);
  let_address_sanitizer_come_later();
  const pid_t child = try_to_fork_awaited();
  if (child < 0) {
    const int error = errno;
    print({Verdict::kFails, "device",
           std::string("no process for a program: ") + strerror(error) + soft::process_remedy(error)});
    return 1;
  }
  if (child == 0) {
    execl("/proc/self/exe", "dapple-run", "--doctor=device", nullptr);
    if (errno == ENOENT) {
      print(
          {Verdict::kPartly, "device", "not tried: /proc is not mounted, by which dapple-run starts itself: mount it"});
      _exit(0);
    }
    print({Verdict::kFails, "device", std::string("dapple-run cannot run itself: ") + strerror(errno)});
    _exit(1);
  }
  const int status = await(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) return WEXITSTATUS(status);
  const std::string end = WIFSIGNALED(status) ? std::string("by signal ") + std::to_string(WTERMSIG(status))
                                              : "with " + std::to_string(WEXITSTATUS(status));
  print({Verdict::kFails, "device", "a program that opens the devices ends " + end});
  return 1;
}

}  // namespace

int examine(const Libraries& libraries) {
  // A dappled that is started for this report need not stay.
  setenv("DAPPLED_LINGER", "0.5", 0);
  std::vector<Line> lines = {own_files(libraries), c_library(), libibverbs(libraries), network()};
  for (const Line& line : lines) print(line);
  const DaemonLines daemon_lines = daemon();
  const Line others[] = {daemon_lines.port, daemon_lines.dappled, system_calls(), namespaces(), limits()};
  for (const Line& line : others) {
    print(line);
    lines.push_back(line);
  }
  const int device = examine_device_in_child(libraries);
  const bool fails =
      device != 0 || std::ranges::any_of(lines, [](const Line& line) { return line.verdict == Verdict::kFails; });
  // Somebody may read the lines from a file.
  return fails || ferror(stdout) != 0 ? 1 : 0;
}

}  // namespace dapple::run::doctor
