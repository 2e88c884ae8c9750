// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/objects/device_memory.hpp"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>

#include "provider/common/file_limit.hpp"
#include "provider/common/host_guards.hpp"

namespace dapple::soft {
namespace {

OwnedFd open_udmabuf() {
  return OwnedFd(open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
}

// A file whose pages udmabuf shares; none if it cannot be made.
OwnedFd make_file(size_t size) {
  OwnedFd file(memfd_create("dapple-device-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || !provider::file_may_have(size)) return {};
  // fallocate() reports a lack of memory; a first access would end in SIGBUS.
  while (fallocate(file.get(), 0, 0, static_cast<off_t>(size)) != 0)
    if (errno != EINTR) return {};
  // udmabuf wants this one, and refuses F_SEAL_WRITE.
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return {};
  return file;
}

}  // namespace

DeviceMemory::~DeviceMemory() {
  const CancelGuard whole;
  if (bytes_ != nullptr) munmap(bytes_, size_);
  file_.reset();
}

bool DeviceMemory::take(size_t length) {
  assert(bytes_ == nullptr);
  const CancelGuard whole;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t size = (length + page - 1) / page * page;
  if (open_udmabuf()) file_ = make_file(size);
  const int kind = file_ ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, kind, file_.get(), 0);
  if (pages == MAP_FAILED) return false;
  bytes_ = static_cast<std::byte*>(pages);
  // Linux (6.12, 7.2) zeroes a page of fallocate() at its first access through the file, also if a dma-buf has had it.
  if (file_) memset(pages, 0, size);
  size_ = size;
  file_.hide();
  return true;
}

int DeviceMemory::export_dmabuf() const {
  const CancelGuard whole;
  const OwnedFd maker = open_udmabuf();
  if (!file_ || !maker) return -EOPNOTSUPP;
  const udmabuf_create create = {static_cast<uint32_t>(file_.get()), UDMABUF_FLAGS_CLOEXEC, 0, size_};
  const int dmabuf = ioctl(maker.get(), UDMABUF_CREATE, &create);
  return dmabuf >= 0 ? dmabuf : -errno;
}

}  // namespace dapple::soft
