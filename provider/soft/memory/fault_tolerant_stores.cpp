// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/fault_tolerant_stores.hpp"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "provider/soft/memory/ordered_copy.hpp"

namespace dapple::soft {

void store_tolerating_faults(std::byte* to, const std::byte* from, size_t size) {
  const iovec source = {const_cast<std::byte*>(from), size};
  const iovec target = {to, size};
  if (process_vm_writev(getpid(), &source, 1, &target, 1, 0) >= 0 || errno == EFAULT) return;
  // A filter of system calls forbids the call.
  copy_last_word_last(to, from, size);
}

}  // namespace dapple::soft
