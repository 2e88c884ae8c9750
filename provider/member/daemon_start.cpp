// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/daemon_start.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "provider/common/settings.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/system/owned_fd.hpp"

// clone() by a name that no sanitizer interposes: ThreadSanitizer treats clone() as fork(), and ends a program that
// starts a thread afterwards.
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...) noexcept;

namespace dapple::soft {
namespace {

// A busy machine may take long. The end of dappled is noticed at once.
constexpr int kReadyMilliseconds = 60'000;
constexpr size_t kStackSize = 64 * 1024;
constexpr size_t kMaxEnvironment = 4096;

// The path of dappled, seen from the folder of the file that this code is in.
constexpr const char* kPlaces[] = {
    "/../libexec/dapple/dappled",        // PREFIX/lib
    "/../../libexec/dapple/dappled",     // PREFIX/lib/dapple, PREFIX/lib/ARCHITECTURE
    "/../../../libexec/dapple/dappled",  // PREFIX/lib/ARCHITECTURE/dapple
    "/dappled",                          // the build folder's bin
    "/../bin/dappled",                   // the build folder's lib
    "/../../bin/dappled",                // the build folder's lib/dapple
};

bool find_program(char (&path)[PATH_MAX], Problem& problem) {
  if (const char* named = provider::settings().dappled) {
    if (strlen(named) < sizeof path && access(named, X_OK) == 0) {
      strcpy(path, named);
      return true;
    }
    problem.set(ENOENT, "DAPPLE_DAPPLED names %.150s, which cannot be run: %s", named, strerror(errno));
    return false;
  }
  Dl_info here;
  char file[PATH_MAX];
  if (dladdr(reinterpret_cast<void*>(&start_daemon), &here) == 0 || here.dli_fname == nullptr ||
      realpath(here.dli_fname, file) == nullptr) {
    // A program's own name may be relative to a folder that it has left.
    const ssize_t size = readlink("/proc/self/exe", file, sizeof file - 1);
    file[size > 0 ? size : 0] = '\0';
  }
  if (char* slash = strrchr(file, '/'); slash != nullptr) *slash = '\0';
  for (const char* place : kPlaces) {
    const int size = snprintf(path, sizeof path, "%s%s", file, place);
    if (size > 0 && static_cast<size_t>(size) < sizeof path && access(path, X_OK) == 0) return true;
  }
  problem.set(ENOENT, "dappled was not found %s%.120s; set DAPPLE_DAPPLED to its path",
              *file == '\0' ? "from this root folder" : "beside ", file);
  return false;
}

// The child's stack and its environment.
class Room {
 public:
  // A program that has no memory left starts dappled all the same, because it may have to give its objects back. Two
  // threads that start it at the same time need more.
  Room() : is_reserve_(!reserve_taken.test_and_set()) {
    void* memory = reserve;
    if (!is_reserve_) memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) memory_ = static_cast<char*>(memory);
  }
  ~Room() {
    if (is_reserve_) reserve_taken.clear();
    if (!is_reserve_ && memory_ != nullptr) munmap(memory_, kSize);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  // False with errno.
  explicit operator bool() const { return memory_ != nullptr; }
  char* stack_end() const { return memory_ + kStackSize; }
  char** environment() const { return reinterpret_cast<char**>(stack_end()); }

 private:
  static constexpr size_t kSize = kStackSize + (kMaxEnvironment + 1) * sizeof(char*);
  alignas(16) static char reserve[kSize];
  // In a child of fork() it may be taken for ever.
  static std::atomic_flag reserve_taken;

  const bool is_reserve_;
  char* memory_ = nullptr;
};
alignas(16) char Room::reserve[kSize];
constinit std::atomic_flag Room::reserve_taken;

// The child's needs, prepared before: it shares this process' memory and must not allocate.
struct Start {
  const char* path;
  char* const* arguments;
  char* const* environment;
  int ready;
  int error;
};

// The child makes its system calls by this. A preloaded library may have functions of the C library's names, with
// tables of descriptors or handlers (librspreload, libjsig), and the child shares these tables with the program.
template <typename... Arguments>
int call(long number, Arguments... arguments) {
  return static_cast<int>(syscall(number, arguments...));
}

// Without close-on-exec.
void keep_only(int descriptor, int number) {
  if (descriptor != number) {
    call(SYS_dup3, descriptor, number, 0);
  } else {
    call(SYS_fcntl, descriptor, F_SETFD, 0);
  }
}

int open_own(const char* path, int flags) {
  return call(SYS_openat, AT_FDCWD, path, flags, 0);
}

// The kernel's structure of a handler: SIG_DFL, without flags and mask.
constexpr uint64_t kDefaultAction[8] = {};
constexpr uint64_t kNoSignals = 0;

// AddressSanitizer would keep its marks for this frame, which never returns, and apply them to the next use of this
// memory.
[[gnu::no_sanitize_address]] int child(void* argument) {
  Start& start = *static_cast<Start*>(argument);
  // This process has its own copy of the table of handlers. exec() keeps ignored signals ignored and blocked signals
  // blocked.
  for (int signal_number = 1; signal_number < NSIG; signal_number++)
    call(SYS_rt_sigaction, signal_number, kDefaultAction, nullptr, sizeof kNoSignals);
  call(SYS_rt_sigprocmask, SIG_SETMASK, &kNoSignals, nullptr, sizeof kNoSignals);
  // This process has its own copy of the table of descriptors, and it may be full.
  keep_only(start.ready, 3);
  for (int fd = 0; fd <= 2; fd++) call(SYS_close, fd);
  if (call(SYS_close_range, 4, ~0U, 0) != 0) {
    const long most = sysconf(_SC_OPEN_MAX);
    for (int fd = 4; fd < most; fd++) call(SYS_close, fd);
  }
  // Without /dev, a descriptor that can neither read nor write keeps the numbers 0 to 2 in use.
  int null = open_own("/dev/null", O_RDWR);
  if (null < 0) null = open_own("/", O_PATH);
  if (null < 0) {
    start.error = errno;
    _exit(127);
  }
  keep_only(null, 0);
  keep_only(null, 1);
  keep_only(null, 2);
  call(SYS_execve, start.path, start.arguments, start.environment);
  start.error = errno;
  _exit(127);
}

// dappled's environment: ours, without the variables that make the loader load libraries or print messages.
size_t environment_for(char** to) {
  size_t count = 0;
  for (char** entry = environ; entry != nullptr && *entry != nullptr && count < kMaxEnvironment; entry++) {
    static constexpr const char* kDropped[] = {"LD_PRELOAD=", "LD_AUDIT=", "LD_DEBUG="};
    bool dropped = false;
    for (const char* name : kDropped) dropped = dropped || strncmp(*entry, name, strlen(name)) == 0;
    if (!dropped) to[count++] = *entry;
  }
  to[count] = nullptr;
  return count;
}

bool wait_until_ready(int from, const char* path, Problem& problem) {
  char text[kLineSize];
  size_t used = 0;
  for (;;) {
    pollfd waiting = {from, POLLIN, 0};
    const int polled = poll(&waiting, 1, kReadyMilliseconds);
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0) {
      problem.set(ETIMEDOUT, "%.150s was started and does not answer", path);
      return false;
    }
    const ssize_t got = read(from, text + used, sizeof text - 1 - used);
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) used += static_cast<size_t>(got);
    // 'R': it listens. Anything else is a line with the reason why it does not.
    if (used > 0 && text[0] == 'R') return true;
    if (got <= 0 || used == sizeof text - 1) break;
  }
  text[used] = '\0';
  if (used > 0) {
    problem.set(EIO, "%s", text);
  } else {
    problem.set(ESRCH, "%.150s ended before it was ready", path);
  }
  return false;
}

}  // namespace

bool start_daemon(Starting starting, Problem& problem) {
  char path[PATH_MAX];
  if (!find_program(path, problem)) return false;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    problem.set(errno, "cannot create a pipe for dappled: %s%s", strerror(errno), descriptor_remedy(errno));
    return false;
  }
  OwnedFd from(ends[0]), to(ends[1]);
  const Room room;
  if (!room) {
    problem.set(errno, "no memory to start dappled: %s; raise ulimit -v", strerror(errno));
    return false;
  }
  environment_for(room.environment());
  char name[] = "dappled";
  char option[] = "--ready-fd=3";
  char replace[] = "--replace";
  char* arguments[] = {name, option, starting == Starting::kReplace ? replace : nullptr, nullptr};
  Start start = {path, arguments, room.environment(), to.get(), 0};

  // No atfork handlers run, and this program, which may be large, is not copied and gets no SIGCHLD.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int process = __clone(child, room.stack_end(), CLONE_VM | CLONE_VFORK, &start);
  const int clone_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  to.reset();
  if (process < 0) {
    problem.set(clone_error, "cannot create a process for dappled: %s%s", strerror(clone_error),
                process_remedy(clone_error));
    return false;
  }
  // dappled continues in a process of its own, and this child ends.
  while (waitpid(process, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  if (start.error != 0) {
    problem.set(start.error, "%.150s cannot be run: %s", path, strerror(start.error));
    return false;
  }
  return wait_until_ready(from.get(), path, problem);
}

}  // namespace dapple::soft
