// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/waits.hpp"

#include <poll.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "provider/common/clock.hpp"
#include "provider/soft/hang/threads/proc_files.hpp"
#include "provider/source_lines/loaded_code.hpp"

namespace dapple::soft::hang {
namespace {

// A thread that polls may sleep between two polls.
constexpr uint64_t kPollsWithin = 1'000'000'000;

// Without its folder.
std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

// The caller's memory may be gone by now.
bool copy_own(void* to, uint64_t from, size_t size) {
  const iovec local = {to, size};
  const iovec remote = {reinterpret_cast<void*>(from), size};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

std::vector<int> of_poll(uint64_t list, uint64_t count) {
  std::vector<int> found;
  for (uint64_t i = 0; i < std::min<uint64_t>(count, 1024); i++) {
    pollfd each;
    if (!copy_own(&each, list + i * sizeof each, sizeof each)) break;
    if ((each.events & POLLIN) != 0) found.push_back(each.fd);
  }
  return found;
}

std::vector<int> of_select(uint64_t count, uint64_t readers) {
  std::vector<int> found;
  fd_set set;
  FD_ZERO(&set);
  const auto limit = static_cast<int>(std::min<uint64_t>(count, FD_SETSIZE));
  if (readers == 0 || !copy_own(&set, readers, (static_cast<size_t>(limit) + 63) / 64 * 8)) return found;
  for (int fd = 0; fd < limit; fd++) {
    if (FD_ISSET(fd, &set)) found.push_back(fd);
  }
  return found;
}

std::vector<int> descriptors_of(std::string_view function, const CallArguments& arguments) {
  if (function.find("epoll") != function.npos) return watched_by_epoll(static_cast<int>(arguments[0]));
  if (function.find("poll") != function.npos) return of_poll(arguments[0], arguments[1]);
  if (function.find("select") != function.npos) return of_select(arguments[0], arguments[1]);
  if (function == "read" || function == "__read" || function == "recv") return {static_cast<int>(arguments[0])};
  return {};
}

bool is_library_of_rdma(std::string_view file) {
  return file.starts_with("libibverbs") || file.starts_with("librdmacm");
}

// A sanitizer's function stands between the C library and its caller. It is in a library of the compiler, or in the
// program itself.
bool is_sanitizer(std::string_view file, std::string_view function) {
  return function.starts_with("__interceptor_") || file.starts_with("libasan.") || file.starts_with("libtsan.") ||
         file.starts_with("libubsan.") || file.starts_with("liblsan.") || file.starts_with("libclang_rt.");
}

}  // namespace

Wait wait_of(const ThreadStack& thread, const View& view) {
  Wait wait;
  bool in_c_library = true;
  for (int i = 0; i < thread.stack.count; i++) {
    // The thread may be in dlopen().
    const source_lines::LoadedCode code = source_lines::loaded_code_at(thread.stack.callers[i]);
    if (code.file == nullptr) break;
    const std::string_view file = name_of(code.file);
    const std::string_view name = code.function == nullptr ? "" : code.function;
    if (is_sanitizer(file, name)) continue;
    in_c_library = in_c_library && (file.starts_with("libc.") || file.starts_with("libc-"));
    if (in_c_library && wait.system_function.empty()) wait.system_function = name;
    if (is_library_of_rdma(file)) {
      if (!name.empty()) wait.function = name;
    } else if (!in_c_library && !file.starts_with("libdapple") && !file.starts_with("libc.")) {
      break;
    }
  }
  if (thread.in_kernel && thread.arguments) wait.descriptors = descriptors_of(wait.system_function, *thread.arguments);
  const auto found = view.pollers.find(thread.thread);
  if (found != view.pollers.end() && found->second.last_ns + kPollsWithin > now_ns()) wait.polled = found->second.cqs;
  return wait;
}

}  // namespace dapple::soft::hang
