// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/records/file_name.hpp"

#include <stdio.h>
#include <unistd.h>

namespace dapple::soft {

bool expand_file_name(const char* name, char* path, size_t size) {
  size_t used = 0;
  for (const char* from = name; *from != '\0'; from++) {
    const bool number = from[0] == '%' && from[1] == 'p';
    const int wrote =
        number ? snprintf(path + used, size - used, "%d", getpid()) : snprintf(path + used, size - used, "%c", *from);
    if (wrote < 0 || static_cast<size_t>(wrote) >= size - used) return false;
    used += static_cast<size_t>(wrote);
    if (number) from++;
  }
  path[used] = '\0';
  return used > 0;
}

}  // namespace dapple::soft
