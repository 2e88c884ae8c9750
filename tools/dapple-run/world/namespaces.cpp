// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/world/namespaces.hpp"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "provider/system/owned_fd.hpp"

namespace dapple::run {
namespace {

bool write_text(const char* path, const std::string& text) {
  const soft::OwnedFd file(open(path, O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// The kernel gives lo 127.0.0.1 and ::1.
bool start_lo() {
  const soft::OwnedFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  strcpy(request.ifr_name, "lo");
  if (!socket || ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

}  // namespace

bool enter_namespaces(int kinds) {
  if (unshare(kinds) == 0) return true;
  // Files keep their owner by the same numbers.
  const std::string uid = std::to_string(geteuid()), gid = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | kinds) != 0) return false;
  write_text("/proc/self/setgroups", "deny");
  return write_text("/proc/self/gid_map", gid + ' ' + gid + " 1") &&
         write_text("/proc/self/uid_map", uid + ' ' + uid + " 1");
}

bool enter_mount_namespace() {
  return enter_namespaces(CLONE_NEWNS) && mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
}

bool live_alone(std::string& reason) {
  if (!enter_namespaces(CLONE_NEWNET)) {
    reason = std::string("a network namespace of its own is not allowed here: ") + strerror(errno) + namespace_remedy();
    return false;
  }
  if (!start_lo()) {
    reason = std::string("the network interface lo of the new network namespace does not start: ") + strerror(errno) +
             namespace_remedy();
    return false;
  }
  return true;
}

std::string namespace_remedy() {
  struct Setting {
    const char* file;
    const char* forbidding;
    const char* allowing;
  };
  constexpr Setting kSettings[] = {
      {"/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"},
      {"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns=0"},
      {"/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces=1000"},
  };
  const int error = errno;
  std::string setting;
  for (const Setting& each : kSettings) {
    std::string word;
    std::ifstream(each.file) >> word;
    if (setting.empty() && word == each.forbidding) setting = std::string("sysctl ") + each.allowing;
  }
  // Only a filter of system calls refuses this one, which changes nothing.
  const bool filtered = unshare(0) != 0;
  errno = error;
  if (filtered) {
    return "; the container's seccomp profile refuses unshare: change the profile" +
           (setting.empty() ? setting : ", and set " + setting + " on the host");
  }
  return setting.empty() ? setting : "; " + setting + " allows it";
}

}  // namespace dapple::run
