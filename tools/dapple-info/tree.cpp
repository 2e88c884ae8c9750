// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-info/tree.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>

#include "provider/member/daemon_link.hpp"

namespace dapple::info {
namespace {

constexpr int kFailed = 1;
// dappled empties the folder when the connection ends.
constexpr int kFarewellTries = 200;
constexpr useconds_t kFarewellPause = 10000;

int fail(const std::string& folder, const std::string& reason) {
  fmt::print(stderr, "dapple-info: {}: {}\n", folder, reason);
  return kFailed;
}

// The reason in words for a user who has named this folder.
std::string reason_of(const soft::Problem& problem) {
  switch (problem.error) {
    case ENOTEMPTY:
      return "the folder has files that dapple did not write; name an empty or a new one";
    case EROFS:
    case EACCES:
    case EPERM:
      return fmt::format("the folder is read-only ({})", problem.line);
    default:
      return problem.line;
  }
}

// The signals that end this process. Readable when one has come.
soft::OwnedFd signals_to_end() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return soft::OwnedFd(signalfd(-1, &signals, SFD_CLOEXEC));
}

// False on an error.
bool wait(int signals, int connection, bool& ended) {
  pollfd waiting[2] = {{signals, POLLIN, 0}, {connection, POLLIN, 0}};
  while (poll(waiting, 2, -1) < 0) {
    if (errno != EINTR) return false;
  }
  ended = waiting[0].revents != 0;
  return true;
}

// dappled writes there with this user's rights. Whoever may rename an entry may put a link in its place.
bool others_may_rename(int folder) {
  struct stat status;
  if (fstat(folder, &status) != 0) return true;
  if (status.st_uid != geteuid() && status.st_uid != 0) return true;
  const mode_t others = S_IWOTH | (status.st_gid != getegid() ? S_IWGRP : 0U);
  return (status.st_mode & others) != 0 && (status.st_mode & S_ISVTX) == 0;
}

void remove_when_empty(const std::string& folder) {
  for (int i = 0; i < kFarewellTries && rmdir(folder.c_str()) != 0 && errno == ENOTEMPTY; i++) usleep(kFarewellPause);
}

int keep(const std::string& folder, const soft::OwnedFd& open_folder) {
  const soft::OwnedFd signals = signals_to_end();
  soft::Problem problem;
  auto link = soft::DaemonLink::open(problem);
  if (link == nullptr) return fail(folder, problem.line);
  for (bool first = true;; first = false) {
    if (!link->export_tree(open_folder.get(), problem)) return fail(folder, reason_of(problem));
    if (first) fmt::print("{}: the files of the devices are there, until this program ends\n", folder);
    fflush(stdout);
    // dappled says nothing more, so an event is the end of the connection.
    bool ended = false;
    if (!wait(signals.get(), link->fd(), ended)) return fail(folder, strerror(errno));
    if (ended) return 0;
    if (!link->check(problem)) return fail(folder, fmt::format("dappled has ended, and {}", problem.line));
  }
}

}  // namespace

int keep_tree(const std::string& folder) {
  const bool made = mkdir(folder.c_str(), 0755) == 0;
  if (!made && errno != EEXIST) return fail(folder, strerror(errno));
  // The umask may have taken the owner's rights.
  if (made && access(folder.c_str(), R_OK | W_OK | X_OK) != 0) chmod(folder.c_str(), 0700);
  const soft::OwnedFd open_folder(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!open_folder) return fail(folder, errno == ENOTDIR ? "it is no folder" : strerror(errno));
  if (others_may_rename(open_folder.get())) {
    return fail(folder, "other users may rename files there; name a folder that only you can write, or a new one");
  }
  if (flock(open_folder.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(folder, errno == EWOULDBLOCK ? "another dapple-info keeps this folder up to date" : strerror(errno));
  }
  const int code = keep(folder, open_folder);
  if (made) remove_when_empty(folder);
  return code;
}

}  // namespace dapple::info
