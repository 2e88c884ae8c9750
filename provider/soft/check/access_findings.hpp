// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Mistakes of the program that an access of the device shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "provider/soft/check/checker.hpp"
#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/memory/memory_table.hpp"

namespace dapple::soft::check {

// An access by a key.
struct Access {
  const void* device = nullptr;  // as for Keys
  uint32_t domain = 0;           // that the key must have
  const char* domain_of = "queue pair";
  std::string text;  // "The device sends 64 bytes at 0x7f.. from queue pair 0x11 of dapple0"
  uint32_t key = 0;
  uint64_t address = 0;  // of the bytes, as the key knows them
  uint64_t length = 0;   // 0: unknown
  uint32_t rights = 0;   // roce::Access
  bool from_peer = false;
  uint32_t qpn = 0;                         // the queue pair that the device uses it for
  std::optional<ReportedStack> posted;      // the request
  std::optional<ReportedStack> queue_pair;  // where it was made, if a peer has posted the request
};

// Reports why an access has failed: its key, its bytes or its rights. False if they show no mistake.
bool report_key(Checker& checker, MemoryTable& memory, const Access& access);
// The name of the first of these rights that `given` lacks; null if it has all.
const char* missing_right(uint32_t rights, uint32_t given);
void report_unmapped(Checker& checker, const Access& access, const void* memory, size_t size);
// Reports an access to freed memory, which nevertheless succeeds.
void report_freed(Checker& checker, const Access& access, const FreedMarks::Mark& freed);

}  // namespace dapple::soft::check
