// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/dapple-run/findings/notes_file.hpp"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider/common/standard_error.hpp"
#include "tools/dapple-run/process/fail.hpp"

namespace dapple::run {

NotesFile::NotesFile(const char* variable) {
  const char* folder = getenv("TMPDIR");
  name_ = std::string(folder != nullptr && folder[0] != '\0' ? folder : "/tmp") + "/dapple-run.XXXXXX";
  int fd = mkstemp(name_.data());
  if (fd >= 0) {
    // The processes open it by its name, which a strict umask would forbid them.
    fchmod(fd, S_IRUSR | S_IWUSR);
    close(fd);
    is_named_ = true;
  } else {
    // Even a whole container may be read-only. This process lives longer than the processes that write through its
    // descriptor.
    fd = memfd_create("dapple-run", MFD_CLOEXEC);
    if (fd < 0) fail(kCannotRun, "no space for a file in TMPDIR or in memory: %s", strerror(errno));
    name_ = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(fd);
  }
  setenv(variable, name_.c_str(), 1);
  setenv("DAPPLE_CHECK_STDERR", provider::FileIdentity(STDERR_FILENO).text, 1);
}

NotesFile::~NotesFile() {
  if (is_named_) unlink(name_.c_str());
}

}  // namespace dapple::run
