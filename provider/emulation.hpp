// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The hook by which the emulator, a library of its own that is loaded when it is asked for, joins this one.
#ifndef DAPPLE_PROVIDER_EMULATION_HPP
#define DAPPLE_PROVIDER_EMULATION_HPP

#include <infiniband/dappledv.h>

#include "coherence/cache.hpp"
#include "provider/overlay/policy.hpp"

namespace dapple::provider {

// The functions of libdapple-emulator.so. Both libraries are of one build.
struct EmulatorLibrary {
  static constexpr uint64_t kVersion = 1;
  static constexpr uint32_t kLine = 64;  // bytes

  uint64_t version;
  // Null if the device carries data to where a region's IOVA says, or why not: static, for people. It writes to itself.
  const char* (*fails_iova_test)(ibv_context* context);
  // The emulator of this process, made on the first call, and again on the first in a child of fork(). Null and *why
  // where there can be none. Not by two threads at the same time.
  RegionPolicy* (*start)(const char** why);
  // Do what the instructions do, for memory with a shadow.
  void (*clean)(const void* address, size_t length);
  void (*clean_invalidate)(const void* address, size_t length);
};
// The one symbol of the library, a function that returns it.
inline constexpr const char* kEmulatorSymbol = "dapple_emulator_library";
using FindEmulatorLibrary = const EmulatorLibrary* (*)();

// Loads the library and starts the emulator; is_new: for a device that is to pass the test first. From then on syncs
// reach the emulator. Null and *why where there can be none.
RegionPolicy* start_emulation(ibv_context* context, bool is_new, const char** why) noexcept;

// A device as programs see it with the emulator over it.
void fill_emulated_attr(dappledv_device_attr& attr) noexcept;

// The operations that syncs use: the CPU's, and with them the emulator's once it has been started.
const coherence::BackEnd& sync_back_end() noexcept;

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_EMULATION_HPP
