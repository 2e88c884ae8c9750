// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace dapple::coherence {

constexpr bool is_power_of_two(uint64_t value) {
  return value != 0 && (value & (value - 1)) == 0;
}

// Calls op(line_address) once, in ascending order, for each line that holds a byte of [address, address + length),
// clipped to the address space. line_size_bytes is a power of two.
//
// The loop ends at the last line's address and not at an end address, because no variable can hold the end of the
// address space's last line.
template <class Op>
inline void for_each_line(uintptr_t address, size_t length, uintptr_t line_size_bytes, Op op) {
  if (length == 0) return;
  const uintptr_t mask = ~(line_size_bytes - 1);
  const uintptr_t span = length - 1;
  const uintptr_t last_byte = span > UINTPTR_MAX - address ? UINTPTR_MAX : address + span;
  const uintptr_t last_line = last_byte & mask;
  uintptr_t line = address & mask;
  for (;;) {
    op(line);
    if (line == last_line) return;
    line += line_size_bytes;
  }
}

}  // namespace dapple::coherence
