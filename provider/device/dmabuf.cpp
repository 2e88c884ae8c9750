// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/dmabuf.hpp"

#include <errno.h>
#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "provider/common/host_guards.hpp"

namespace dapple::provider {
namespace {

// The magic number of the file system of dma-bufs, a part of the kernel's ABI. Not all headers have DMA_BUF_MAGIC.
constexpr unsigned long kMagic = 0x444d4142;
// The kernel asks for another try after a signal.
constexpr int kMaxTries = 1000;

}  // namespace

bool is_dmabuf(int fd) {
  const ErrnoGuard keep;
  struct statfs status;
  return fstatfs(fd, &status) == 0 && static_cast<unsigned long>(status.f_type) == kMagic;
}

int sync_dmabuf(int fd, SyncDirection direction) noexcept {
  const ErrnoGuard keep;
  dma_buf_sync request = {};
  // Both directions of the transfer, because the direction is not known here.
  request.flags = DMA_BUF_SYNC_RW | (direction == SyncDirection::kForDevice ? DMA_BUF_SYNC_END : DMA_BUF_SYNC_START);
  int error = 0;
  for (int tries = 0; tries < kMaxTries; ++tries) {
    if (ioctl(fd, DMA_BUF_IOCTL_SYNC, &request) == 0) return 0;
    error = errno;
    if (error != EINTR && error != EAGAIN) break;
  }
  return error;
}

}  // namespace dapple::provider
