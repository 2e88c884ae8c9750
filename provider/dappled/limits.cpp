// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/limits.hpp"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include <initializer_list>

#include "provider/system/process_limits.hpp"

namespace dapple::dappled {
namespace {

// Enough for all slots and connections, and their rdma_cm channels.
constexpr rlim_t kEnoughFiles = 16384;

}  // namespace

void raise_limits() {
  for (const auto resource : {RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE}) {
    rlimit limit;
    if (getrlimit(resource, &limit) != 0) continue;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(resource, &limit);
  }
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max >= kEnoughFiles) return;
  // CAP_SYS_RESOURCE permits it.
  files = {kEnoughFiles, kEnoughFiles};
  setrlimit(RLIMIT_NOFILE, &files);
}

soft::SocketProcess find_starter() {
  soft::SocketProcess starter;
  starter.process = getppid();
  if (starter.process != 0) soft::name_program(starter.process, starter.program);
  return starter;
}

bool is_file_shortage(int error) {
  return error == EMFILE || error == ETOOMANYREFS;
}

bool is_shortage(int error) {
  const soft::ProcessLimits limits = soft::hard_limits();
  const bool memory_is_limited = limits.address_space != RLIM_INFINITY || limits.data != RLIM_INFINITY;
  return is_file_shortage(error) || (error == ENOMEM && memory_is_limited);
}

void describe_shortage(int error, const soft::SocketProcess& starter, soft::Problem& problem) {
  const soft::ProcessLimits limits = soft::hard_limits();
  char limit[120], program[80] = "the program that started it";
  if (error == ENOMEM) {
    const bool space = limits.address_space <= limits.data;
    snprintf(limit, sizeof limit, "dappled may use only %llu KiB of memory, the hard limit (ulimit %s)",
             static_cast<unsigned long long>((space ? limits.address_space : limits.data) / 1024),
             space ? "-Hv" : "-Hd");
  } else {
    snprintf(limit, sizeof limit, "%s %llu files, the hard limit (ulimit -Hn)",
             error == EMFILE ? "dappled may open only" : "This user's dappleds together pass on more than",
             static_cast<unsigned long long>(limits.open_files));
  }
  if (starter.process != 0)
    snprintf(program, sizeof program, "its starter, process %d (%s)", starter.process, starter.program);
  problem.set(error, "%s of %s; a program with a higher limit replaces dappled", limit, program);
}

}  // namespace dapple::dappled
