// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/machine/mapping.hpp"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "provider/device/machine/lines.hpp"

namespace dapple::provider {
namespace {

// True if the line begins a mapping, as "55b4-55b5 r--p 00000000 fe:00 2474   /usr/bin/head" does. Sets `mapping` then.
bool read_header(const char* line, Mapping& mapping) {
  Mapping read;
  char rights[5] = "";
  int used = 0;
  if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %x:%x %" SCNu64 " %n", &read.begin, &read.end, rights,
             &read.major, &read.minor, &read.inode, &used) < 6 ||
      used == 0) {
    return false;
  }
  read.shared = rights[3] == 's';
  read.name = Path(line + used);
  mapping = read;
  return true;
}

// "VmFlags: rd wr io pf".
void read_flags(const char* line, Mapping& mapping) {
  mapping.has_flags = true;
  const auto has = [line](const char* flag) {
    const char* found = strstr(line, flag);
    return found != nullptr && (found[3] == ' ' || found[3] == '\0');
  };
  mapping.device = has(" io") || has(" pf");
  mapping.mixed = has(" mm");
  mapping.huge_pages = has(" ht");
}

}  // namespace

int find_mapping(const Path& file, uintptr_t address, Mapping& mapping) {
  Lines lines(file);
  bool found = false;
  Mapping each;
  while (const char* line = lines.next()) {
    if (read_header(line, each)) {
      if (found) return 0;
      found = each.begin <= address && address < each.end;
      if (found) mapping = each;
    } else if (found && strncmp(line, "VmFlags:", 8) == 0) {
      read_flags(line, mapping);
      return 0;
    }
  }
  if (lines.error() != 0) return lines.error();
  return found ? 0 : EFAULT;
}

}  // namespace dapple::provider
