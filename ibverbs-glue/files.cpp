// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "ibverbs-glue/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace dapple::verbs {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience(1000);

// Waits until there may be more to read; false after the time-out.
bool wait_for_more(int fd, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  if (left.count() <= 0) return false;
  pollfd wanted{fd, POLLIN, 0};
  return ::poll(&wanted, 1, static_cast<int>(left.count())) != 0;
}

}  // namespace

void throw_at_shortage(int error) {
  if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) throw std::bad_alloc();
}

int read_file(const char* path, std::string& text, size_t limit) {
  struct File {
    const int fd;
    ~File() { ::close(fd); }
  };
  int fd = -1;
  do {
    fd = ::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return errno;
  const File file{fd};
  const Clock::time_point deadline = Clock::now() + kPatience;
  char part[16384];
  for (;;) {
    const ssize_t size = ::read(file.fd, part, sizeof part);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN && wait_for_more(file.fd, deadline)) continue;
    if (size < 0) return errno;
    if (size == 0) return 0;
    text.append(part, static_cast<size_t>(size));
    if (text.size() > limit) return EFBIG;
  }
}

std::string first_line(const std::string& path) {
  std::string text;
  if (const int error = read_file(path.c_str(), text)) {
    throw_at_shortage(error);
    return {};
  }
  return text.substr(0, text.find('\n'));
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (!open) {
    throw_at_shortage(errno);
    return names;
  }
  while (const dirent* entry = ::readdir(open.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return ::strverscmp(a.c_str(), b.c_str()) < 0; });
  return names;
}

std::string sysfs_root() {
  const char* path = ::secure_getenv("SYSFS_PATH");
  return path && *path ? path : "/sys";
}

}  // namespace dapple::verbs
