// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/proof/process_memory.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <utility>

namespace dapple::soft {
namespace {

Right reason_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      return Right::kNoFile;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Right::kPeerLacks;
    default:
      return Right::kRefused;
  }
}

// Not the C library's functions: those are cancellation points, and the doors are in front of some.
OwnedFd open_file(const char* name, int flags) {
  return OwnedFd(static_cast<int>(syscall(SYS_openat, AT_FDCWD, name, flags | O_CLOEXEC)));
}

// Another file could let this process wait for ever.
bool is_of_proc(const OwnedFd& file) {
  struct statfs status = {};
  return fstatfs(file.get(), &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

class Search {
 public:
  Search(pid_t process, const Challenge& challenge, const Parties& parties)
      : process_(process), challenge_(challenge), parties_(parties) {}

  Right by_process() {
    char name[32];
    snprintf(name, sizeof name, "/proc/%d/mem", process_);
    return look_at(name);
  }

  // A main thread that has ended has no memory any more, while the other threads go on.
  Right by_threads() {
    alignas(uint64_t) char entries[4096];
    char name[64];
    snprintf(name, sizeof name, "/proc/%d/task", process_);
    const OwnedFd folder = open_file(name, O_RDONLY | O_DIRECTORY);
    if (!folder) return reason_of(errno);
    // Some of the threads are enough.
    const auto size = syscall(SYS_getdents64, folder.get(), entries, sizeof entries);
    Right right = Right::kOtherMemory;
    for (long at = 0; at < size && right == Right::kOtherMemory;) {
      Entry entry;
      memcpy(&entry, entries + at, sizeof entry);
      const char* thread = entries + at + kNameInEntry;
      at += entry.size;
      if (thread[0] < '0' || thread[0] > '9') continue;
      snprintf(name, sizeof name, "/proc/%d/task/%.16s/mem", process_, thread);
      right = look_at(name);
      if (right == Right::kNoFile) right = Right::kOtherMemory;
    }
    return right;
  }

  OwnedFd memory;
  Secret secret = {};

 private:
  // The start of the kernel's linux_dirent64. The name follows.
  struct Entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
  };
  static constexpr long kNameInEntry = 19;

  Right look_at(const char* name) {
    OwnedFd file = open_file(name, O_RDWR | O_NOCTTY);
    if (!file) return reason_of(errno);
    if (!is_of_proc(file)) return Right::kNoFile;
    Secret found;
    const auto got = syscall(SYS_pread64, file.get(), &found, sizeof found, challenge_.address);
    if (got != sizeof found || seal_of(found, challenge_.address, parties_) != challenge_.seal)
      return Right::kOtherMemory;
    memory = std::move(file);
    secret = found;
    return Right::kGranted;
  }

  const pid_t process_;
  const Challenge challenge_;
  const Parties parties_;
};

}  // namespace

Right open_process_memory(pid_t process, const Challenge& challenge, const Parties& parties, OwnedFd& memory,
                          Secret& secret) {
  if (process <= 0) return Right::kNotVisible;
  Search search(process, challenge, parties);
  Right right = search.by_process();
  // Newer kernels do not open the memory of a thread that has ended.
  if (right == Right::kOtherMemory || right == Right::kNoFile) right = search.by_threads();
  if (right != Right::kGranted) return right;
  memory = std::move(search.memory);
  memory.hide();
  secret = search.secret;
  return Right::kGranted;
}

}  // namespace dapple::soft
