// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/process/memory_file.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {

MemoryFile::MemoryFile(const char* purpose, size_t size) : fd_(memfd_create(purpose, MFD_CLOEXEC)), size_(size) {
  if (fd_ && size_ == 0) return;
  if (fd_ && ftruncate(fd_.get(), static_cast<off_t>(size_)) == 0) {
    void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (memory != MAP_FAILED) memory_ = memory;
  }
  if (memory_ == nullptr) fail(kCannotRun, "no memory for a file: %s", strerror(errno));
}

MemoryFile::~MemoryFile() {
  if (memory_ != nullptr) munmap(memory_, size_);
}

std::string MemoryFile::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd_.get());
}

}  // namespace dapple::run
