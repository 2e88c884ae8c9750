// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The interface to the emulator, a separate library that is loaded on request.
#pragma once

#include <infiniband/dappledv.h>

#include <atomic>

#include "coherence/cache.hpp"
#include "provider/common/check_calls.hpp"
#include "provider/common/policy.hpp"

namespace dapple::provider {

// The functions of libdapple-emulator.so. Both libraries are of one build.
struct EmulatorLibrary {
  static constexpr uint64_t kVersion = 2;
  static constexpr uint32_t kLine = 64;  // bytes

  uint64_t version;
  // Null if the device carries data to the address of a region's IOVA; otherwise the reason, static, for people. The
  // device writes to itself for this test.
  const char* (*fails_iova_test)(ibv_context* context);
  // The emulator of this process, made by the first call, and again by the first call in a child of fork(). show:
  // where findings go, or null. Returns null and sets *why on failure. Not thread-safe.
  RegionPolicy* (*start)(ShowFinding show, const char** why);
  // These two functions do the work of the instructions, for memory with a shadow.
  void (*clean)(const void* address, size_t length);
  void (*clean_invalidate)(const void* address, size_t length);
};
// The library's only symbol, a function that returns this structure.
inline constexpr const char* kEmulatorSymbol = "dapple_emulator_library";
using FindEmulatorLibrary = const EmulatorLibrary* (*)();

// Loads the library and starts the emulator; is_new: for a device that must pass the test first. From then on syncs
// reach the emulator. Null and *why if it is not possible.
RegionPolicy* start_emulation(ibv_context* context, bool is_new, const char** why) noexcept;

// The attributes of a device with the emulator.
void fill_emulated_attr(dappledv_device_attr& attr) noexcept;

// Null until the first sync, or the emulator's start.
extern constinit std::atomic<const coherence::BackEnd*> chosen_sync_back_end;
[[gnu::cold]] const coherence::BackEnd& choose_sync_back_end() noexcept;

// The operations of the syncs: the CPU's, and also the emulator's after its start.
inline const coherence::BackEnd& sync_back_end() noexcept {
  const coherence::BackEnd* chosen = chosen_sync_back_end.load(std::memory_order_acquire);
  if (chosen != nullptr) [[likely]]
    return *chosen;
  return choose_sync_back_end();
}

}  // namespace dapple::provider
