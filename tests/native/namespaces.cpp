// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/namespaces.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dapple::tests {
namespace {

bool write_file(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool good = write(fd, text, strlen(text)) == static_cast<ssize_t>(strlen(text));
  close(fd);
  return good;
}

bool become_root_of_user_namespace() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (unshare(CLONE_NEWUSER) != 0) return false;
  char line[64];
  write_file("/proc/self/setgroups", "deny");
  snprintf(line, sizeof line, "0 %u 1", uid);
  if (!write_file("/proc/self/uid_map", line)) return false;
  snprintf(line, sizeof line, "0 %u 1", gid);
  return write_file("/proc/self/gid_map", line);
}

void loopback_up() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request = {};
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  ioctl(fd, SIOCSIFFLAGS, &request);
  close(fd);
}

// Lets the receiver wait for packets to merge. The setting's files are those of the namespace that mounts sysfs.
bool wait_to_merge() {
  if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) return false;
  write_file("/sys/class/net/vb/napi_defer_hard_irqs", "10");
  return write_file("/sys/class/net/vb/gro_flush_timeout", "200000");
}

// The same as "ethtool -K NAME FEATURE on" and "off".
void set_feature(const char* name, uint32_t command, uint32_t on) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ethtool_value value = {command, on};
  ifreq request = {};
  snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
  request.ifr_data = reinterpret_cast<char*>(&value);
  ioctl(fd, SIOCETHTOOL, &request);
  close(fd);
}

// The kernel tells its protocols of a carrier by a thread of its own, within a second. Until then IPv6 takes no
// question for the address of this end.
void await_carrier(const char* netdev) {
  char command[200];
  snprintf(command, sizeof command,
           "n=0; until ip link show %s | grep -q 'state UP' || [ $n = 500 ]; do n=$((n + 1)); sleep 0.01; done",
           netdev);
  run(command);
}

}  // namespace

void skip_program(const char* why, const char* more) {
  printf("SKIP: %s%s\n", why, more);
  fflush(stdout);
  _exit(77);
}

bool enter_new_namespace() {
  if (unshare(CLONE_NEWNET) != 0) {
    if (!become_root_of_user_namespace() || unshare(CLONE_NEWNET) != 0) return false;
  }
  loopback_up();
  return true;
}

void need_new_namespace() {
  if (enter_new_namespace() || getenv("OWN_NETWORK") != nullptr) return;
  skip_program("no network namespace can be made: ", strerror(errno));
}

bool run(const char* command) {
  const int status = system(command);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

VethPair make_veth_pair() {
  int ready[2], done[2];
  if (pipe2(ready, O_CLOEXEC) != 0 || pipe2(done, O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    bool merges = false;
    const bool good = unshare(CLONE_NEWNET) == 0;
    loopback_up();
    if (good && write(ready[1], "x", 1) == 1) {
      while (read(done[0], &byte, 1) < 0 && errno == EINTR) {
      }
      if (byte == 'x') {
        run("ip addr add 10.77.0.2/24 dev vb && ip addr add fd77::2/64 dev vb nodad && ip link set vb up");
        await_carrier("vb");
        set_feature("vb", ETHTOOL_SGRO, 1);
        merges = wait_to_merge();
      }
    }
    _exit(merges ? 1 : 0);
  }
  close(ready[1]);
  close(done[0]);
  char byte;
  int fd = -1;
  if (read(ready[0], &byte, 1) == 1) {
    char text[400];
    snprintf(text, sizeof text, "/proc/%d/ns/net", child);
    fd = open(text, O_RDONLY | O_CLOEXEC);
    snprintf(text, sizeof text,
             "ip link add va type veth peer name vb netns %d && ip addr add 10.77.0.1/24 dev va && "
             "ip addr add fd77::1/64 dev va nodad && ip link set va up",
             child);
    const bool good = run(text);
    if (!good || write(done[1], "x", 1) != 1) {
      close(fd);
      fd = -1;
    }
  }
  close(done[1]);
  close(ready[0]);
  // veth merges only packets of a peer whose TSO is off.
  set_feature("va", ETHTOOL_STSO, 0);
  int status = 0;
  waitpid(child, &status, 0);
  await_carrier("va");
  return {fd, WIFEXITED(status) && WEXITSTATUS(status) == 1};
}

}  // namespace dapple::tests
