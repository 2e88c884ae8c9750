// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstddef>
#include <string>

#include "provider/system/owned_fd.hpp"

namespace dapple::run {

// A file in memory, filled with zeros, that disappears with this process and its children.
class MemoryFile {
 public:
  // Ends dapple-run with one line if there is no memory for it. `size`: of the memory that is mapped; 0: none is.
  explicit MemoryFile(const char* purpose, size_t size = 0);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int fd() const { return fd_.get(); }
  // The path by which other processes open the file.
  std::string path() const;
  void* memory() const { return memory_; }

 private:
  const soft::OwnedFd fd_;
  const size_t size_;
  void* memory_ = nullptr;
};

}  // namespace dapple::run
