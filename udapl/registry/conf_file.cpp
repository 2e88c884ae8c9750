// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/conf_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "udapl/registry/log.hpp"

namespace dapple::dat {
namespace {

constexpr std::size_t kMaxFileSize = 1 << 20;

struct OpenFile {
  const int fd;
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
};

int open_file(const char* path) noexcept {
  int fd = -1;
  do {
    fd = ::open(path, O_RDONLY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// Reads a whole file; returns 0 or an errno. EFBIG beyond kMaxFileSize. Throws std::bad_alloc also for want of a
/// descriptor: the next call may find one, while a file that cannot be read is not read again.
int read_file(const char* path, std::string& text) {
  const OpenFile file{open_file(path)};
  if (file.fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) throw std::bad_alloc();
  if (file.fd < 0) return errno;
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(file.fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) return 0;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > kMaxFileSize) return EFBIG;
  }
}

void report_unreadable(const std::string& what, const std::string& path, int failure) {
  log(LogType::kError, what + path + ": " + ::strerror(failure));
}

}  // namespace

ConfSearch default_search() {
  ConfSearch search;
  search.override_path = ::secure_getenv("DAT_OVERRIDE");
  search.paths = {DAPPLE_SYSCONFDIR "/dat.conf", "/etc/dat.conf"};
  if (search.paths[0] == search.paths[1]) search.paths.pop_back();
  return search;
}

Configuration load_configuration(const ConfSearch& search, ApiMajors wanted) {
  Configuration found;
  std::string text;
  if (search.override_path) {
    if (const int failure = read_file(search.override_path, text)) {
      report_unreadable("DAT_OVERRIDE names ", search.override_path, failure);
      found.path = search.override_path;
      return found;
    }
    found.path = search.override_path;
  } else {
    for (const std::string& path : search.paths) {
      text.clear();
      const int failure = read_file(path.c_str(), text);
      if (failure == 0) {
        found.path = path;
        break;
      }
      if (failure != ENOENT) report_unreadable("", path, failure);
    }
    if (found.path.empty()) text.clear();
  }
  found.entries = parse_dat_conf(text, wanted, [&](unsigned line, const std::string& what) {
    log(LogType::kError, found.path + ":" + std::to_string(line) + ": " + what + "; line ignored");
  });
  if (log_wants(LogType::kStaticRegistry))
    log(LogType::kStaticRegistry, found.path + ": " + std::to_string(found.entries.size()) + " entries");
  return found;
}

}  // namespace dapple::dat
