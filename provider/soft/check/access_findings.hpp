// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Mistakes of the program that an access of the device shows.
#ifndef DAPPLE_PROVIDER_SOFT_CHECK_ACCESS_FINDINGS_HPP
#define DAPPLE_PROVIDER_SOFT_CHECK_ACCESS_FINDINGS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/report.hpp"

namespace dapple::soft::check {

// An access by a key.
struct Access {
  const void* device = nullptr;  // as for Keys
  uint32_t domain = 0;           // of the queue pair
  std::string text;              // "The device sends 64 bytes at 0x7f.. from queue pair 0x11 of dapple0"
  uint32_t key = 0;
  bool from_peer = false;
  std::optional<Place> posted;  // the request
};

// Reports a mistake that the key shows. False if it shows none.
bool report_key(Checker& checker, const Access& access);
void report_unmapped(Checker& checker, const Access& access, const void* memory, size_t size);
// Reports an access to freed memory, which nevertheless succeeds.
void report_freed(Checker& checker, const Access& access, const FreedMarks::Mark& freed);

}  // namespace dapple::soft::check

#endif  // DAPPLE_PROVIDER_SOFT_CHECK_ACCESS_FINDINGS_HPP
