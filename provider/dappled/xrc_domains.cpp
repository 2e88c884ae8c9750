// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/xrc_domains.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace dapple::dappled {
namespace {

// Each has two descriptors.
constexpr size_t kMaxDomains = 256;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

soft::OwnedFd make_memory() {
  soft::OwnedFd memory(memfd_create("dapple-xrc", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return memory;
  if (ftruncate(memory.get(), soft::kXrcMemorySize) != 0 ||
      fcntl(memory.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    memory.reset();
  }
  return memory;
}

bool is_memory(int fd) {
  struct stat status = {};
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals && fstat(fd, &status) == 0 && status.st_size == soft::kXrcMemorySize;
}

}  // namespace

XrcDomains::Domain* XrcDomains::make(const Name& name, soft::OwnedFd file, soft::OwnedFd memory,
                                     soft::Problem& problem) {
  if (domains_.size() == kMaxDomains) {
    problem.set(ENOSPC, "the programs of this network namespace have %zu XRC domains of files open; close one",
                domains_.size());
    return nullptr;
  }
  if (!memory) memory = make_memory();
  if (!memory) {
    problem.set(errno, "dappled cannot make the memory of an XRC domain: %s", strerror(errno));
    return nullptr;
  }
  domains_.push_back({name, std::move(file), std::move(memory), {}});
  return &domains_.back();
}

int XrcDomains::open(uint32_t connection, uint32_t device, uint32_t flags, soft::OwnedFd file, soft::OwnedFd memory,
                     soft::Problem& problem) {
  struct stat status = {};
  // As the kernel, which takes no descriptor that only names a file.
  const int mode = file ? fcntl(file.get(), F_GETFL) : -1;
  if (mode < 0 || (mode & O_PATH) != 0 || fstat(file.get(), &status) != 0 || (memory && !is_memory(memory.get()))) {
    problem.set(EBADF, "the file of the XRC domain, or its memory, cannot be used");
    return -1;
  }
  const Name name = {device, status.st_dev, status.st_ino};
  const auto found = std::ranges::find(domains_, name, &Domain::name);
  Domain* domain = found == domains_.end() ? nullptr : &*found;
  if (domain != nullptr && (flags & soft::kXrcIsNew) != 0) {
    problem.set(EINVAL, "a process has the XRC domain of this file open");
    return -1;
  }
  if (domain == nullptr && (flags & soft::kXrcCreates) == 0) {
    problem.set(EAGAIN, "no process has the XRC domain of this file open");
    return -1;
  }
  if (domain == nullptr) domain = make(name, std::move(file), std::move(memory), problem);
  if (domain == nullptr) return -1;
  if (std::ranges::find(domain->connections, connection) == domain->connections.end())
    domain->connections.push_back(connection);
  return domain->memory.get();
}

XrcDomains::Place XrcDomains::without(Place domain, uint32_t connection) {
  std::erase(domain->connections, connection);
  return domain->connections.empty() ? domains_.erase(domain) : domain + 1;
}

void XrcDomains::close(uint32_t connection, const Name& name) {
  const auto found = std::ranges::find(domains_, name, &Domain::name);
  if (found != domains_.end()) without(found, connection);
}

void XrcDomains::leave(uint32_t connection) {
  for (auto domain = domains_.begin(); domain != domains_.end();) domain = without(domain, connection);
}

}  // namespace dapple::dappled
