/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "pattern.h"

#include <string.h>

#include "protocol.h"
#include "report.h"

/* Word number INDEX of the sequence (the last step of splitmix64). */
static uint64_t pattern_word(uint64_t seed, uint64_t index) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + (index + 1) * 0xd1342543de82ef95u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

void pattern_fill(unsigned char* at, size_t length, uint64_t seed) {
  for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
    uint64_t word = pattern_word(seed, done / sizeof word);
    size_t left = length - done;
    memcpy(at + done, &word, left < sizeof word ? left : sizeof word);
  }
}

void pattern_invert(unsigned char* at, size_t length) {
  for (size_t i = 0; i < length; i++) {
    at[i] = (unsigned char)~at[i];
  }
}

size_t pattern_difference(const unsigned char* at, size_t length, uint64_t seed, int inverted) {
  for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
    uint64_t word = pattern_word(seed, done / sizeof word) ^ (inverted ? ~UINT64_C(0) : 0);
    size_t left = length - done < sizeof word ? length - done : sizeof word;
    if (memcmp(at + done, &word, left) != 0) {
      const unsigned char* expected = (const unsigned char*)&word;
      size_t i = 0;
      while (at[done + i] == expected[i]) {
        i++;
      }
      return done + i;
    }
  }
  return length;
}

static void guard_must_stand(const unsigned char* guard, size_t length, size_t range_index, const char* what) {
  for (size_t i = 0; i < kGuardBytes; i++) {
    if (guard[i] != kGuardValue) {
      fail("%s: a byte beside the range of %zu bytes was overwritten (at %zd of it): memory is corrupt", what, length,
           (ptrdiff_t)(range_index + i));
    }
  }
}

void pattern_must_match(const unsigned char* at, size_t length, uint64_t seed, int inverted, const char* what) {
  size_t difference = pattern_difference(at, length, seed, inverted);
  if (difference != length) {
    fail("%s: byte %zu of %zu is 0x%02x, which is wrong; the data did not arrive as it was sent", what, difference,
         length, at[difference]);
  }
  guard_must_stand(at - kGuardBytes, length, (size_t)-kGuardBytes, what);
  guard_must_stand(at + length, length, length, what);
}
