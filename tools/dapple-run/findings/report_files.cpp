// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/findings/report_files.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <string_view>

#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {

ReportFile::ReportFile(const char* option, const std::string& path) : path_(path) {
  if (path.empty()) return;
  file_ = soft::OwnedFd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file_) fail(kWrongUse, "%s: %s cannot be written: %s", option, path.c_str(), strerror(errno));
}

bool ReportFile::write(const std::string& text) {
  if (!file_) return true;
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      say("%s cannot be written: %s", path_.c_str(), strerror(errno));
      return false;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  file_.reset();
  return true;
}

}  // namespace dapple::run
