// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Stores into memory that a program may poll: the last bytes become visible last.
#pragma once

#include <stdint.h>
#include <string.h>

#include <cstddef>

namespace dapple::soft {

template <typename Word>
inline bool aligned_for(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % sizeof(Word) == 0;
}

template <typename Word>
inline void store_word_last(std::byte* to, const std::byte* from) {
  Word word;
  memcpy(&word, from, sizeof(word));
  __atomic_store_n(reinterpret_cast<Word*>(to), word, __ATOMIC_RELEASE);
}

// The bytes at the end of a copy to `address` that become visible at once, and last. `size` is not 0.
inline size_t size_of_last_word(uint64_t address, size_t size) {
  if (size >= sizeof(uint64_t) && (address + size) % sizeof(uint64_t) == 0) return sizeof(uint64_t);
  return size == sizeof(uint32_t) && address % sizeof(uint32_t) == 0 ? sizeof(uint32_t) : 1;
}

// Copies so that a reader that sees one of the last eight bytes (the last byte, if there are fewer or they are not
// aligned) sees all bytes before them.
inline void copy_last_word_last(std::byte* to, const std::byte* from, size_t size) {
  if (size == 0) return;
  const size_t last = size_of_last_word(reinterpret_cast<uintptr_t>(to), size);
  const size_t body = size - last;
  if (body > 0) memcpy(to, from, body);
  if (last == sizeof(uint64_t)) return store_word_last<uint64_t>(to + body, from + body);
  if (last == sizeof(uint32_t)) return store_word_last<uint32_t>(to + body, from + body);
  store_word_last<uint8_t>(to + body, from + body);
}

}  // namespace dapple::soft
