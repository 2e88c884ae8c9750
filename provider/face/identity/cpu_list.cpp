// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/face/identity/cpu_list.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "provider/system/owned_fd.hpp"

namespace dapple::face {
namespace {

bool read_line(const char* path, char (&line)[soft::kCpuListSize]) {
  const soft::OwnedFd file(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? read(file.get(), line, sizeof line - 1) : -1;
  if (size <= 0) return false;
  line[size] = '\0';
  line[strcspn(line, "\n")] = '\0';
  return line[0] != '\0';
}

}  // namespace

void read_cpu_list(int32_t numa_node, char (&list)[soft::kCpuListSize]) {
  memset(list, 0, sizeof list);
  char path[80];
  snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", numa_node);
  char line[soft::kCpuListSize];
  if ((numa_node >= 0 && read_line(path, line)) || read_line("/sys/devices/system/cpu/online", line)) {
    strcpy(list, line);
  } else {
    list[0] = '0';
  }
}

}  // namespace dapple::face
