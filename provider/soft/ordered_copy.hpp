// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Stores into memory that a program may poll: the last bytes become visible last.
#ifndef DAPPLE_PROVIDER_SOFT_ORDERED_COPY_HPP
#define DAPPLE_PROVIDER_SOFT_ORDERED_COPY_HPP

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

// Copies so that a reader that sees one of the last eight bytes (the last byte, if there are fewer or they are not
// aligned) sees all bytes before them.
inline void copy_last_word_last(std::byte* to, const std::byte* from, size_t size) {
  if (size == 0) return;
  if (size >= sizeof(uint64_t) && aligned_for<uint64_t>(to + size)) {
    const size_t body = size - sizeof(uint64_t);
    memcpy(to, from, body);
    store_word_last<uint64_t>(to + body, from + body);
    return;
  }
  if (size == sizeof(uint32_t) && aligned_for<uint32_t>(to)) {
    store_word_last<uint32_t>(to, from);
    return;
  }
  memcpy(to, from, size - 1);
  __atomic_store_n(reinterpret_cast<uint8_t*>(to + size - 1), static_cast<uint8_t>(from[size - 1]), __ATOMIC_RELEASE);
}

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_ORDERED_COPY_HPP
