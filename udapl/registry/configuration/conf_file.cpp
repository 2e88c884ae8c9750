// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/configuration/conf_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "ibverbs-glue/files.hpp"
#include "udapl/registry/common/log.hpp"

namespace dapple::registry {
namespace {

constexpr std::size_t kMaxFileSize = 1 << 20;

/// Reads a whole file. Returns 0 or an errno. Throws std::bad_alloc also without a free descriptor, because the next
/// call may find one; a file that cannot be read is not read again.
int read_conf(const char* path, std::string& text) {
  const int failure = verbs::read_file(path, text, kMaxFileSize);
  verbs::throw_at_shortage(failure);
  return failure;
}

void report_unreadable(const std::string& what, const std::string& path, int failure) {
  log(LogType::kError, what + path + ": " + ::strerror(failure));
}

}  // namespace

ConfSearch default_search(const std::vector<std::string>& further) {
  ConfSearch search;
  search.override_path = ::secure_getenv("DAT_OVERRIDE");
  search.paths = {DAPPLE_SYSCONFDIR "/dat.conf", "/etc/dat.conf"};
  if (search.paths[0] == search.paths[1]) search.paths.pop_back();
  search.paths.insert(search.paths.end(), further.begin(), further.end());
  return search;
}

Configuration load_configuration(const ConfSearch& search, ApiMajors wanted) {
  Configuration found;
  std::string text;
  if (search.override_path) {
    if (const int failure = read_conf(search.override_path, text)) {
      report_unreadable("DAT_OVERRIDE names ", search.override_path, failure);
      found.path = search.override_path;
      return found;
    }
    found.path = search.override_path;
  } else {
    for (const std::string& path : search.paths) {
      text.clear();
      const int failure = read_conf(path.c_str(), text);
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

}  // namespace dapple::registry
