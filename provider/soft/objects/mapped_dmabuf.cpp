// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/mapped_dmabuf.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>

#include "provider/common/host_guards.hpp"
#include "provider/system/doors.hpp"

namespace dapple::soft {
namespace {

// Of the file system of dma-bufs, as provider/device/dmabuf.cpp has it.
constexpr unsigned long kMagic = 0x444d4142;

bool is_dmabuf(int descriptor) {
  struct statfs status;
  return fstatfs(descriptor, &status) == 0 && static_cast<unsigned long>(status.f_type) == kMagic;
}

// 0 if it has none.
uint64_t size_of(int descriptor) {
  const off_t size = lseek(descriptor, 0, SEEK_END);
  return size < 0 ? 0 : static_cast<uint64_t>(size);
}

}  // namespace

MappedDmabuf::~MappedDmabuf() {
  if (pages_ != nullptr) munmap(pages_, mapped_);
  if (fd_ >= 0) close_own(fd_);
}

int MappedDmabuf::map(int descriptor, uint64_t offset, size_t length, bool write) {
  assert(pages_ == nullptr && fd_ < 0);
  const ErrnoGuard keep;
  if (fcntl(descriptor, F_GETFD) < 0) return EBADF;
  if (length == 0 || !is_dmabuf(descriptor)) return EINVAL;
  size_ = size_of(descriptor);
  if (offset > size_ || length > size_ - offset) return EINVAL;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t before = offset % page;
  const size_t size = length + before;
  void* pages = mmap(nullptr, size, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor,
                     static_cast<off_t>(offset - before));
  if (pages == MAP_FAILED) return errno == ENOMEM ? ENOMEM : EOPNOTSUPP;
  pages_ = pages;
  mapped_ = size;
  bytes_ = static_cast<std::byte*>(pages) + before;
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return errno;
  fd_ = hide_own(copy);
  return 0;
}

}  // namespace dapple::soft
