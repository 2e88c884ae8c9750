// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/machine/files.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dapple::provider {

Path& Path::operator+=(std::string_view text) {
  if (too_long_ || text.size() >= sizeof(text_) - size_) {
    too_long_ = true;
    shorten(0);
    return *this;
  }
  memcpy(text_ + size_, text.data(), text.size());
  shorten(size_ + text.size());
  return *this;
}

Path operator+(Path path, std::string_view text) {
  path += text;
  return path;
}

std::string_view Path::name() const {
  const size_t slash = view().rfind('/');
  return slash == std::string_view::npos ? view() : view().substr(slash + 1);
}

void Path::shorten(size_t size) {
  size_ = size;
  text_[size_] = '\0';
}

bool Path::go_up() {
  const size_t slash = view().rfind('/');
  shorten(slash == std::string_view::npos ? 0 : slash);
  return !empty();
}

bool Path::resolve(const Path& path) {
  char real[PATH_MAX];
  shorten(0);
  too_long_ = false;
  if (path.empty() || realpath(path.c_str(), real) == nullptr) return false;
  *this += real;
  return !empty();
}

Look look(const Path& path) {
  struct stat status;
  if (path.empty()) return Look::kUnreadable;
  if (lstat(path.c_str(), &status) == 0) return Look::kThere;
  return errno == ENOENT ? Look::kAbsent : Look::kUnreadable;
}

ssize_t read_file(const Path& path, void* buffer, size_t size) {
  const int fd = path.empty() ? -1 : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return -1;
  size_t used = 0;
  while (used < size) {
    const ssize_t got = read(fd, static_cast<char*>(buffer) + used, size - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      close(fd);
      return -1;
    }
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  close(fd);
  return static_cast<ssize_t>(used);
}

std::string_view read_line(const Path& path, char* buffer, size_t size) {
  const ssize_t got = read_file(path, buffer, size);
  if (got <= 0) return {};
  const std::string_view text(buffer, static_cast<size_t>(got));
  return text.substr(0, text.find_first_of(std::string_view("\n\0", 2)));
}

}  // namespace dapple::provider
