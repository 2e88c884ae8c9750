// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>

#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// The pages of device memory: this process' own, at addresses that the program does not know. Where /dev/udmabuf can be
// opened they are a file's, so that a dma-buf can have the same pages.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory();

  // Takes zeroed pages for `length` bytes, once. False if there are none.
  bool take(size_t length);
  // A new descriptor of a dma-buf with these pages, which stay until it and its copies are closed. An error below 0:
  // -EOPNOTSUPP without /dev/udmabuf, or the kernel's.
  int export_dmabuf() const;

  std::byte* bytes() const { return bytes_; }

 private:
  std::byte* bytes_ = nullptr;
  size_t size_ = 0;  // whole pages
  OwnedFd file_;
};

}  // namespace dapple::soft
