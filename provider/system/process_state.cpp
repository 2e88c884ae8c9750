// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/system/process_state.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

bool is_kept_waiting(pid_t process) {
  char path[32], bytes[512];
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  const OwnedFd file(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? read(file.get(), bytes, sizeof bytes) : 0;
  return is_kept_waiting({bytes, size > 0 ? static_cast<size_t>(size) : 0});
}

bool is_kept_waiting(std::string_view stat) {
  // The state is behind the name, which is in parentheses and may have some itself.
  const size_t name_end = stat.rfind(')');
  if (name_end == stat.npos || name_end + 2 >= stat.size()) return false;
  const char state = stat[name_end + 2];
  return state == 'R' || state == 'D';
}

}  // namespace dapple::soft
