// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A part of a dma-buf in this process' memory, for as long as a region needs it. Confined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace dapple::soft {

class MappedDmabuf {
 public:
  MappedDmabuf() = default;
  ~MappedDmabuf();
  MappedDmabuf(const MappedDmabuf&) = delete;
  MappedDmabuf& operator=(MappedDmabuf&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(pages_, other.pages_);
    std::swap(mapped_, other.mapped_);
    std::swap(size_, other.size_);
    std::swap(fd_, other.fd_);
    return *this;
  }

  // Maps `length` bytes from `offset`, once. 0 or an errno: EBADF or EINVAL if the descriptor is not a dma-buf's, or
  // the bytes are not in it; EOPNOTSUPP if its exporter has no mapping for the CPU.
  int map(int descriptor, uint64_t offset, size_t length, bool write);

  std::byte* bytes() const { return bytes_; }
  // Of the whole dma-buf, also if it cannot be mapped.
  uint64_t size() const { return size_; }
  // Our own descriptor.
  int fd() const { return fd_; }

 private:
  std::byte* bytes_ = nullptr;
  void* pages_ = nullptr;
  size_t mapped_ = 0;
  uint64_t size_ = 0;
  int fd_ = -1;
};

}  // namespace dapple::soft
