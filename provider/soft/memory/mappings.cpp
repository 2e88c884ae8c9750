// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/mappings.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace dapple::soft {

Mappings::Mappings() : maps_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}

bool Mappings::next(Mapping& mapping) {
  char* line_end = nullptr;
  while ((line_end = static_cast<char*>(memchr(text_, '\n', length_))) == nullptr) {
    // A line that does not fit has a long path: its beginning is enough.
    if (length_ == sizeof text_ - 1) length_ = 120;
    const ssize_t more = maps_ ? read(maps_.get(), text_ + length_, sizeof text_ - 1 - length_) : 0;
    if (more <= 0) return false;
    length_ += static_cast<size_t>(more);
  }
  *line_end = '\0';
  mapping = {};
  unsigned long long begin = 0, end = 0;
  const int fields = sscanf(text_, "%llx-%llx %4s %llx %*s %llu %159[^\n]", &begin, &end, mapping.rights,
                            &mapping.offset, &mapping.inode, mapping.file);
  mapping.begin = begin;
  mapping.end = end;
  length_ -= static_cast<size_t>(line_end + 1 - text_);
  memmove(text_, line_end + 1, length_);
  return fields >= 5;
}

}  // namespace dapple::soft
