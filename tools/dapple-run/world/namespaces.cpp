// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/world/namespaces.hpp"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

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

bool live_alone(std::string& reason) {
  if (!enter_namespaces(CLONE_NEWNET)) {
    reason = std::string("a network namespace of its own is not allowed here: ") + strerror(errno);
    return false;
  }
  if (!start_lo()) {
    reason = std::string("the network interface lo of the new network namespace does not start: ") + strerror(errno);
    return false;
  }
  return true;
}

}  // namespace dapple::run
