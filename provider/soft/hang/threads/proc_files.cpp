// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/threads/proc_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <string_view>

#include "provider/system/owned_fd.hpp"
#include "provider/system/process_state.hpp"

namespace dapple::soft::hang {
namespace {

std::string contents(const std::string& name) {
  std::string text;
  const OwnedFd file(open(name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return text;
  char bytes[2048];
  for (ssize_t size; (size = read(file.get(), bytes, sizeof bytes)) > 0;) text.append(bytes, static_cast<size_t>(size));
  return text;
}

// The text behind `label` on its line.
std::string_view field(std::string_view text, std::string_view label) {
  const size_t at = text.find(label);
  if (at == text.npos) return {};
  text.remove_prefix(at + label.size());
  while (!text.empty() && (text[0] == ' ' || text[0] == '\t')) text.remove_prefix(1);
  return text.substr(0, text.find('\n'));
}

uint64_t number(std::string_view text, int base = 10) {
  return strtoull(std::string(text).c_str(), nullptr, base);
}

}  // namespace

std::vector<int> threads_of_process() {
  std::vector<int> threads;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return threads;
  while (const dirent* entry = readdir(folder)) {
    if (const int thread = atoi(entry->d_name); thread > 0) threads.push_back(thread);
  }
  closedir(folder);
  return threads;
}

ThreadStatus read_thread_status(int thread) {
  ThreadStatus status;
  const std::string folder = "/proc/self/task/" + std::to_string(thread);
  const std::string text = contents(folder + "/status");
  status.name = field(text, "Name:");
  // SIGHUP, SIGINT, SIGUSR1, SIGALRM and SIGTERM, but not SIGSEGV (own_thread.hpp).
  constexpr uint64_t kUsual = 1 << 0 | 1 << 1 | 1 << 9 | 1 << 13 | 1 << 14, kSegmentation = 1 << 10;
  // glibc uses signal 32 itself, and blocks it only while a thread makes another one or ends.
  constexpr uint64_t kInternal = uint64_t{1} << 31;
  status.blocked = number(field(text, "SigBlk:"), 16);
  status.is_ours = (status.blocked & (kUsual | kSegmentation)) == kUsual;
  status.changes = (status.blocked & kInternal) != 0;
  status.switches = number(field(text, "\nvoluntary_ctxt_switches:"));
  const std::string stat = contents(folder + "/stat");
  status.runs = is_kept_waiting(stat);
  // The 14th and the 15th word; the second is the name in parentheses.
  size_t at = stat.rfind(')');
  for (int word = 2; word < 14 && at != stat.npos; word++) at = stat.find(' ', at + 1);
  if (at != stat.npos) {
    char* end = nullptr;
    status.ticks = strtoull(stat.c_str() + at, &end, 10);
    status.ticks += strtoull(end, nullptr, 10);
  }
  return status;
}

ThreadStatus read_settled_thread_status(int thread) {
  constexpr timespec kWait = {0, 1'000'000};
  ThreadStatus status = read_thread_status(thread);
  for (int i = 0; i < 200 && status.changes; i++) {
    nanosleep(&kWait, nullptr);
    status = read_thread_status(thread);
  }
  return status;
}

std::optional<WaitingCall> read_waiting_call(int thread) {
  const std::string text = contents("/proc/self/task/" + std::to_string(thread) + "/syscall");
  // Its number, six arguments, the stack pointer and the place.
  WaitingCall call = {};
  const int words = sscanf(text.c_str(), "%*d %" SCNx64 " %" SCNx64 " %" SCNx64 " %*x %*x %*x %*x %" SCNxPTR,
                           &call.arguments[0], &call.arguments[1], &call.arguments[2], &call.behind);
  return words == 4 ? std::optional(call) : std::nullopt;
}

std::vector<int> watched_by_epoll(int epoll) {
  std::vector<int> watched;
  const std::string text = contents("/proc/self/fdinfo/" + std::to_string(epoll));
  constexpr std::string_view kLabel = "tfd:";
  for (size_t at = text.find(kLabel); at != text.npos; at = text.find(kLabel, at + 1))
    watched.push_back(atoi(text.c_str() + at + kLabel.size()));
  return watched;
}

}  // namespace dapple::soft::hang
