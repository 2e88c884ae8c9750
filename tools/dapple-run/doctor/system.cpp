// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/doctor/system.hpp"

#include <errno.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <optional>

#include "provider/system/owned_fd.hpp"
#include "provider/system/problem.hpp"
#include "tools/dapple-run/doctor/memory_limit.hpp"
#include "tools/dapple-run/process/child.hpp"
#include "tools/dapple-run/world/namespaces.hpp"

namespace dapple::run::doctor {
namespace {

using soft::OwnedFd;

// The first word of a file; empty if it cannot be read.
std::string word_of(const char* path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

// The value of a field of /proc/self/status.
std::string status_field(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string word, value; file >> word;) {
    if (word == name + ":" && file >> value) return value;
  }
  return {};
}

bool port_group() {
  const OwnedFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  // As dappled chooses the program of a packet.
  sock_filter all = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog program = {1, &all};
  sockaddr_in any = {};
  any.sin_family = AF_INET;
  return socket && setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0 &&
         bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0 &&
         setsockopt(socket.get(), SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program) == 0;
}

bool threads() {
  pthread_t thread;
  const int error = pthread_create(
      &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
  if (error == 0) return pthread_join(thread, nullptr) == 0;
  errno = error;
  return false;
}

struct Call {
  const char* name;
  bool (*works)();
};
// What the device cannot do without.
constexpr Call kCalls[] = {
    {"sockets of AF_UNIX", [] { return bool(OwnedFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0))); }},
    {"sockets of AF_NETLINK", [] { return bool(OwnedFd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0))); }},
    {"a group of UDP sockets with a filter", port_group},
    {"memfd_create", [] { return bool(OwnedFd(memfd_create("doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING))); }},
    {"epoll_create1", [] { return bool(OwnedFd(epoll_create1(EPOLL_CLOEXEC))); }},
    {"eventfd", [] { return bool(OwnedFd(eventfd(0, EFD_CLOEXEC))); }},
    {"timerfd_create", [] { return bool(OwnedFd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC))); }},
    {"threads", threads},
};

// The errno with which --alone and --mount end; 0 if they work. Some systems let a program make namespaces and refuse
// all that it does there, so the child goes as far as they do. Sets `is_tried` to false if there is no process for it.
int namespaces_error(bool& is_tried) {
  const pid_t child = try_to_fork_awaited();
  is_tried = child >= 0;
  if (!is_tried) return errno;
  if (child == 0) {
    std::string reason;
    _exit(live_alone(reason) && enter_mount_namespace() ? 0 : errno);
  }
  const int status = await(child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

std::string amount(rlim_t value) {
  return value == RLIM_INFINITY ? "no limit" : std::to_string(value);
}

rlimit limit_of(__rlimit_resource resource) {
  rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
  getrlimit(resource, &limit);
  return limit;
}

}  // namespace

Line c_library() {
  Line line{Verdict::kWorks, "C library", std::string("glibc ") + gnu_get_libc_version()};
  glob_t found;
  if (glob("/lib/ld-musl-*.so.1", 0, nullptr, &found) == 0) {
    line.text += "; programs for musl, which is also here, see the files of the devices and cannot open them";
    globfree(&found);
  }
  return line;
}

Line network() {
  const OwnedFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const std::unique_ptr<struct if_nameindex, void (*)(struct if_nameindex*)> names(if_nameindex(), if_freenameindex);
  if (!socket || names == nullptr)
    return {Verdict::kFails, "network", std::string("no network devices can be listed: ") + strerror(errno)};
  std::string up, down;
  bool loopback_down = false;
  for (const struct if_nameindex* each = names.get(); each->if_index != 0; ++each) {
    ifreq request = {};
    strncpy(request.ifr_name, each->if_name, sizeof request.ifr_name - 1);
    if (ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) continue;
    const bool is_up = (request.ifr_flags & IFF_UP) != 0;
    if (!is_up && (request.ifr_flags & IFF_LOOPBACK) != 0) loopback_down = true;
    std::string& list = is_up ? up : down;
    list += (list.empty() ? "" : ", ") + std::string(each->if_name);
  }
  Line line{Verdict::kWorks, "network", up.empty() ? "no network device is up" : "up: " + up};
  if (!down.empty()) line.text += "; down: " + down;
  if (loopback_down) {
    line.verdict = up.empty() ? Verdict::kFails : Verdict::kPartly;
    line.text += "; programs of this machine need lo: ip link set lo up";
  }
  return line;
}

Line system_calls() {
  std::string refused;
  for (const Call& call : kCalls) {
    errno = 0;
    if (!call.works()) refused += (refused.empty() ? "" : ", ") + std::string(call.name) + " (" + strerror(errno) + ")";
  }
  const bool filtered = status_field("Seccomp") == "2";
  if (!refused.empty()) {
    return {Verdict::kFails, "system calls",
            "refused: " + refused + (filtered ? "; a seccomp filter is on: change the container's profile" : "")};
  }
  Line line{Verdict::kWorks, "system calls", {}};
  line.text = filtered ? "a seccomp filter is on, and permits what the device needs" : "no seccomp filter";
  if (const std::string scope = word_of("/proc/sys/kernel/yama/ptrace_scope"); !scope.empty() && scope != "0") {
    line.text +=
        "; Yama's ptrace_scope is " + scope + ", so unrelated programs exchange packets, which is slower than copies";
  }
  return line;
}

Line namespaces() {
  bool is_tried = false;
  const int error = namespaces_error(is_tried);
  if (!is_tried)
    return {Verdict::kPartly, "namespaces",
            std::string("not tried, without a process for it: ") + strerror(error) + soft::process_remedy(error)};
  if (error == 0)
    return {Verdict::kWorks, "namespaces",
            "allowed: --alone works, and statically linked programs see the devices' files"};
  return {Verdict::kPartly, "namespaces",
          std::string("not allowed (") + strerror(error) + ")" + namespace_remedy() +
              "; only --alone and statically linked programs, which see the devices' files there, need them"};
}

Line limits() {
  constexpr rlim_t kFewFiles = 256, kLittleSpace = rlim_t{512} << 20;
  // A small program with a device uses 14 MiB, and dappled 3 MiB.
  constexpr uint64_t kLittleMemory = uint64_t{64} << 20;
  const rlimit files = limit_of(RLIMIT_NOFILE), space = limit_of(RLIMIT_AS);
  Line line{Verdict::kWorks, "limits", {}};
  line.text = "open files " + amount(files.rlim_cur) + " of " + amount(files.rlim_max) + ", address space " +
              (space.rlim_cur == RLIM_INFINITY ? "no limit" : std::to_string(space.rlim_cur >> 10) + " KiB") +
              ", processes and threads " + amount(limit_of(RLIMIT_NPROC).rlim_cur);
  const std::optional<uint64_t> memory = memory_limit();
  if (memory) line.text += ", memory of the control group " + std::to_string(*memory >> 10) + " KiB";
  if (files.rlim_max < kFewFiles) {
    line.verdict = Verdict::kPartly;
    line.text += "; a dappled that is started with these limits serves few programs: raise ulimit -Hn";
  }
  if (space.rlim_cur < kLittleSpace) {
    line.verdict = Verdict::kPartly;
    line.text += "; the device's memory counts as address space: raise ulimit -v";
  }
  if (memory && *memory < kLittleMemory) {
    line.verdict = Verdict::kPartly;
    line.text += "; the kernel ends programs when the group has used its memory: raise the group's limit";
  }
  return line;
}

}  // namespace dapple::run::doctor
