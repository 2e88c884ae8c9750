// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/sim/referee.hpp"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <initializer_list>

#include "tests/sim/random.hpp"

namespace dapple::sim {

void Referee::note(const char* what, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  for (const char* letter = what; *letter != '\0'; ++letter) hash_ = hash_ * 31 + static_cast<unsigned char>(*letter);
  for (const uint64_t value : {now, a, b, c, d}) hash_ = mixed(hash_ + value);
  if (verbose_)
    std::printf("%12.3f us  %-22s %#" PRIx64 " %#" PRIx64 " %#" PRIx64 " %#" PRIx64 "\n",
                static_cast<double>(now) / 1000, what, a, b, c, d);
}

void Referee::fail(const char* format, ...) {
  if (failed()) return;
  char text[512];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  char when[64];
  std::snprintf(when, sizeof when, "at %.3f us: ", static_cast<double>(now) / 1000);
  reason_ = std::string(when) + text;
}

}  // namespace dapple::sim
