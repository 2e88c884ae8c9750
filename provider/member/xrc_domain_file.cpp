// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/member/xrc_domain_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "provider/protocol/xrc_messages.hpp"

namespace dapple::soft {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

OwnedFd make_xrc_domain_file() {
  OwnedFd memory(memfd_create("dapple-xrc", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return memory;
  if (ftruncate(memory.get(), kXrcMemorySize) != 0 || fcntl(memory.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0)
    memory.reset();
  return memory;
}

bool is_xrc_domain_file(int fd) {
  struct stat status = {};
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & kSeals) == kSeals && (seals & F_SEAL_WRITE) == 0 && fstat(fd, &status) == 0 &&
         status.st_size == kXrcMemorySize;
}

}  // namespace dapple::soft
