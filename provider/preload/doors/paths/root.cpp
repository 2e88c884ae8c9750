// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/paths/root.hpp"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <mutex>

#include "provider/common/host_guards.hpp"
#include "provider/common/mutex.hpp"
#include "provider/preload/doors/link.hpp"
#include "provider/preload/doors/process/descriptors.hpp"
#include "provider/preload/doors/process/real.hpp"

namespace dapple::doors {
namespace detail {
constinit std::atomic<bool> is_tree_in_use = false;
}

namespace {

constinit soft::Mutex fetching{soft::LockRank::kTreeFolder};
constinit std::atomic<int> root = -1;
constinit std::atomic<dev_t> device = 0;
constinit std::atomic<ino_t> inode = 0;
constinit std::atomic<unsigned> fetched_from = 0;  // the number of the connection

void let_go_after_fork() {
  fetching.unlock();
  restore_signals_after_fork();
}

// After those of link.cpp: a fork takes this lock first, as fetch() does.
void handle_forks() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    pthread_atfork(
        [] {
          block_signals_for_fork();
          fetching.lock();
        },
        let_go_after_fork, let_go_after_fork);
  });
}

// A bare system call may have closed the descriptor.
bool is_root(int fd, struct stat& status) {
  return fd >= 0 && syscall(SYS_fstat, fd, &status) == 0 && status.st_dev == device.load() &&
         status.st_ino == inode.load();
}

bool is_root(int fd) {
  struct stat status;
  return is_root(fd, status);
}

// dappled makes another folder if somebody has removed the last one.
bool is_current() {
  struct stat status;
  return fetched_from.load() == connection_number() && is_root(root.load(), status) && status.st_nlink > 0;
}

// The folder's descriptor keeps its number, because other threads may use it at this moment.
void enter(soft::OwnedFd& folder) {
  struct stat status;
  if (syscall(SYS_fstat, folder.get(), &status) != 0) return;
  const int before = root.load();
  const bool was_ours = is_root(before);
  device = status.st_dev;
  inode = status.st_ino;
  if (was_ours && real.dup3(folder.get(), before, O_CLOEXEC) == before) {
    track(before, {.kind = Kind::kHidden});
  } else {
    root = hide(folder.release());
  }
  detail::is_tree_in_use = true;
  assert(is_root(root.load()));
}

bool fetch(soft::DaemonLink& link, soft::Problem& problem) {
  assert_held(fetching);
  const unsigned number = connection_number();
  soft::OwnedFd folder;
  char path[soft::kTreePathSize];
  if (!link.tree(folder, path, problem)) return false;
  enter(folder);
  // If dappled has died meanwhile, the next call asks again.
  fetched_from = number;
  return true;
}

// A device works without its files.
const char* lack_without(const soft::DaemonLink* link) {
  return link == nullptr ? "no software device" : "no files of the software devices";
}

// Only for this process, which shares its memory with its parent: it changes nothing there.
int root_for_child() {
  if (is_root(root.load())) return root.load();
  soft::Problem problem;
  const auto link = soft::DaemonLink::open(problem);
  soft::OwnedFd folder;
  char path[soft::kTreePathSize];
  if (link == nullptr || !link->tree(folder, path, problem)) {
    complain(problem, lack_without(link.get()));
    return -1;
  }
  return folder.release();
}

int root_for_process() {
  soft::Problem problem;
  soft::DaemonLink* link = connection(problem);
  bool good = link != nullptr;
  // dappled may have died, and another one renders another folder.
  if (good && link->look() == soft::DaemonLink::State::kGone) good = link->check(problem);
  if (good) {
    handle_forks();
    fetching.lock();
    good = is_current() || fetch(*link, problem);
    fetching.unlock();
  }
  if (!good) complain(problem, lack_without(link));
  return good ? root.load() : -1;
}

}  // namespace

void note_tree_in_use() {
  detail::is_tree_in_use = true;
}

int tree_root() {
  int found;
  {
    const CancelGuard whole;
    const SignalGuard quiet;
    found = owns_table() ? root_for_process() : root_for_child();
  }
  if (found < 0) errno = ENOENT;
  return found;
}

dev_t tree_device() {
  return device.load();
}

bool refresh(const char* path) {
  const CancelGuard whole;
  const SignalGuard quiet;
  soft::Problem problem;
  soft::DaemonLink* link = owns_table() ? connection(problem) : nullptr;
  bool fails = false;
  return link != nullptr && link->refresh_tree(path, fails, problem) && fails;
}

}  // namespace dapple::doors
