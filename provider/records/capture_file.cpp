// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/records/capture_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider/records/file_name.hpp"

namespace dapple::soft {
namespace {

struct FileHeader {
  uint32_t magic = 0xA1B23C4D;  // nanoseconds
  uint16_t major = 2;
  uint16_t minor = 4;
  uint32_t zone = 0;
  uint32_t accuracy = 0;
  uint32_t most = 65535;
  uint32_t link_type = 113;  // LINKTYPE_LINUX_SLL: a header with the direction, and then the IP packet
};
static_assert(sizeof(FileHeader) == 24);

}  // namespace

OwnedFd open_capture_file(const char* name, Problem& problem) {
  char path[PATH_MAX];
  if (!expand_file_name(name, path)) {
    problem.set(EINVAL, "DAPPLE_PCAP is not a file name: %.150s", name);
    return {};
  }
  OwnedFd file(open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0) {
    problem.set(errno, "DAPPLE_PCAP: %.150s cannot be written: %s", path, strerror(errno));
    return {};
  }
  // Only one of several processes may write the file's header.
  const bool regular = S_ISREG(status.st_mode);
  if (regular) flock(file.get(), LOCK_EX);
  FileHeader header;
  bool good = true;
  if (!regular || lseek(file.get(), 0, SEEK_END) == 0) {
    errno = ENOSPC;  // if a part of it finds room
    good = ::write(file.get(), &header, sizeof header) == sizeof header;
  } else {
    FileHeader there;
    errno = EINVAL;
    good = pread(file.get(), &there, sizeof there, 0) == sizeof there && memcmp(&there, &header, sizeof header) == 0;
  }
  const int error = errno;
  if (regular) flock(file.get(), LOCK_UN);
  if (good) return file;
  problem.set(error, "DAPPLE_PCAP: this program cannot append packets to %.150s: %s", path, strerror(error));
  return {};
}

}  // namespace dapple::soft
