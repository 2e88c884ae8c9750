// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/udapl-registry/scratch.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

CapturedStderr::CapturedStderr() : saved_(::dup(STDERR_FILENO)), file_(::memfd_create("stderr", MFD_CLOEXEC)) {
  if (saved_ < 0 || file_ < 0 || ::dup2(file_, STDERR_FILENO) < 0) std::abort();
}

CapturedStderr::~CapturedStderr() {
  ::dup2(saved_, STDERR_FILENO);
  ::close(saved_);
  ::close(file_);
}

std::string CapturedStderr::text() {
  std::string out(static_cast<std::size_t>(::lseek(file_, 0, SEEK_END)), '\0');
  if (::pread(file_, out.data(), out.size(), 0) != static_cast<ssize_t>(out.size())) std::abort();
  return out;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "dapple-XXXXXX";
  if (!::mkdtemp(pattern.data())) std::abort();
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::filesystem::remove_all(path_);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}
