// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/doors/program_memory.hpp"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "provider/preload/doors/descriptors.hpp"

namespace dapple::doors {
namespace {

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

// False if the address is bad; `forbidden` is set if the system forbids these calls.
bool transfer(Transfer call, void* ours, uint64_t theirs, size_t size, bool& forbidden) {
  forbidden = false;
  if (size == 0) return true;
  const iovec here = {ours, size};
  const iovec there = {reinterpret_cast<void*>(static_cast<uintptr_t>(theirs)), size};
  const int saved = errno;
  const bool done = call(table_owner(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
  forbidden = !done && (errno == EPERM || errno == ENOSYS);
  errno = saved;
  return done;
}

}  // namespace

bool copy_from_program(void* to, uint64_t from, size_t size) {
  bool forbidden;
  if (transfer(process_vm_readv, to, from, size, forbidden)) return true;
  if (!forbidden || from == 0) return false;
  memcpy(to, reinterpret_cast<const void*>(static_cast<uintptr_t>(from)), size);
  return true;
}

bool copy_to_program(uint64_t to, const void* from, size_t size) {
  bool forbidden;
  if (transfer(process_vm_writev, const_cast<void*>(from), to, size, forbidden)) return true;
  if (!forbidden || to == 0) return false;
  memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(to)), from, size);
  return true;
}

bool is_writable(uint64_t address, size_t size) {
  // From there to there.
  bool forbidden;
  if (transfer(process_vm_writev, reinterpret_cast<void*>(static_cast<uintptr_t>(address)), address, size, forbidden)) {
    return true;
  }
  return forbidden && address != 0;
}

}  // namespace dapple::doors
