// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The pages of shared memory for which this process has shadows. Two processes would have two shadows of one page,
// which no hardware has, so only one of them may register it.
#pragma once

#include <stdint.h>

namespace dapple::provider {

// A claim is a lock on a byte of the emulator's own file, which every process with the emulator has. The kernel ends
// the claims of a process with it. A child of fork() has none. Processes that load the emulator from different files do
// not see each other's claims. Confined: the caller locks.
class Claims {
 public:
  Claims() = default;
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  // False if another process has claimed one of the pages; then nothing has changed. first: by
  // PhysicalAddresses::number_of().
  bool claim(uint64_t first, uint64_t count);
  void give_up(uint64_t first, uint64_t count);

 private:
  bool open();
};

}  // namespace dapple::provider
