// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/kills/watcher.hpp"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>

namespace dapple::tests {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kMaxKib = 256 * 1024;
#else
constexpr long kMaxKib = 16 * 1024;
#endif
constexpr long kMaxDescriptors = 200;

}  // namespace

long resident_kib(pid_t process) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/statm", process);
  FILE* file = fopen(path, "re");
  if (file == nullptr) return 0;
  long size = 0, resident = 0;
  if (fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  fclose(file);
  return resident * sysconf(_SC_PAGESIZE) / 1024;
}

long descriptors_of(pid_t process) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd", process);
  DIR* folder = opendir(path);
  if (folder == nullptr) return 0;
  long count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(folder);
  return count;
}

bool Watcher::status(soft::StatusReply& status) {
  soft::Problem problem;
  if (link_ == nullptr) link_ = soft::DaemonLink::open(problem, soft::DaemonLink::Start::kNever);
  if (link_ != nullptr && link_->status(status, problem)) return true;
  // At this moment no dappled runs, or it is so new that the programs have not found it.
  link_.reset();
  return false;
}

void Watcher::measure(pid_t dappled) {
  most_kib_ = std::max(most_kib_, resident_kib(dappled));
  most_descriptors_ = std::max(most_descriptors_, descriptors_of(dappled));
}

bool Watcher::kill_dappled() {
  soft::StatusReply reply;
  if (!status(reply)) return false;
  measure(static_cast<pid_t>(reply.process));
  return kill(static_cast<pid_t>(reply.process), SIGKILL) == 0;
}

bool Watcher::report() const {
  printf("dappled: %ld KiB and %ld descriptors at most\n", most_kib_, most_descriptors_);
  return most_kib_ <= kMaxKib && most_descriptors_ <= kMaxDescriptors;
}

}  // namespace dapple::tests
