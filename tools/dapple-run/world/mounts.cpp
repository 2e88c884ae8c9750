// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/world/mounts.hpp"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>

#include "provider/member/daemon_link.hpp"
#include "tools/dapple-run/world/covered_folder.hpp"
#include "tools/dapple-run/world/namespaces.hpp"

namespace dapple::run {
namespace {

// The program inherits the connection to dappled under a number that it does not expect in use.
constexpr int kConnectionNumber = 900;

// The kernel refuses to read a file of this kind, as it refuses to read an entry of a GID table that is empty. dappled
// replaces the entry when it is not empty any more, and the mount goes then.
void make_unreadable(const char* pattern) {
  glob_t found;
  if (glob(pattern, 0, nullptr, &found) != 0) return;
  for (size_t i = 0; i < found.gl_pathc; i++) {
    struct stat status;
    const char* path = found.gl_pathv[i];
    if (stat(path, &status) == 0 && status.st_size == 0) mount("/proc/self/ns/net", path, nullptr, MS_BIND, nullptr);
  }
  globfree(&found);
}

bool stay_connected(const soft::DaemonLink& link) {
  return fcntl(link.fd(), F_DUPFD, kConnectionNumber) >= 0 || fcntl(link.fd(), F_DUPFD, 3) >= 0;
}

}  // namespace

bool mount_device_files(std::string& reason) {
  soft::Problem problem;
  const auto link = soft::DaemonLink::open(problem);
  soft::OwnedFd folder;
  char path[soft::kTreePathSize];
  if (link == nullptr || !link->tree(folder, path, problem) || !link->watch_tree(problem)) {
    reason = problem.line;
    return false;
  }
  if (!stay_connected(*link)) {
    reason = strerror(errno);
    return false;
  }
  if (!enter_mount_namespace()) {
    reason = std::string("a mount namespace of its own is not allowed here: ") + strerror(errno) + namespace_remedy();
    return false;
  }
  if (!cover("/sys", std::string(path) + "/sys")) {
    reason = std::string("the files of ") + path + " cannot be mounted over /sys: " + strerror(errno);
    return false;
  }
  for (const char* kind : {"types", "ndevs"}) {
    make_unreadable((std::string("/sys/class/infiniband/*/ports/1/gid_attrs/") + kind + "/*").c_str());
  }
  // A container's /dev may forbid it. Such a program then does not see that the device could be opened, which no
  // program without a library can do.
  if (access("/dev/infiniband", F_OK) != 0) cover("/dev", std::string(path) + "/dev");
  return true;
}

}  // namespace dapple::run
