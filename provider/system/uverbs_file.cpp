// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/system/uverbs_file.hpp"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>

namespace dapple::soft {

void UverbsFile::write(char (&text)[kSize + 1]) const {
  [[maybe_unused]] const int size =
      snprintf(text, sizeof text, "dapple-uverbs %010" PRIu32 " %010d %020" PRIu64 "\n", device, maker, network);
  assert(size == kSize);
}

bool UverbsFile::read(int fd) {
  char text[kSize + 1] = {};
  UverbsFile found;
  if (pread(fd, text, sizeof text, 0) != static_cast<ssize_t>(kSize)) return false;
  if (sscanf(text, "dapple-uverbs %" SCNu32 " %d %" SCNu64, &found.device, &found.maker, &found.network) != 3)
    return false;
  char same[kSize + 1];
  if (found.maker <= 0) return false;
  found.write(same);
  if (memcmp(text, same, kSize) != 0) return false;
  *this = found;
  return true;
}

uint64_t network_of_process() {
  struct stat status = {};
  return stat("/proc/self/ns/net", &status) == 0 ? status.st_ino : 0;
}

}  // namespace dapple::soft
