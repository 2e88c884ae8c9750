// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The exports of libdapple-emulator.so.
#include "provider/emulator/emulator.hpp"
#include "provider/emulator/self_test.hpp"
#include "provider/libdapple/emulation.hpp"

namespace dapple::provider {
namespace {

RegionPolicy* start(ShowFinding show, const char** why) {
  return Emulator::start(show, why);
}

void clean(const void* address, size_t length) {
  if (Emulator* emulator = Emulator::running()) emulator->shadow().clean(reinterpret_cast<uintptr_t>(address), length);
}

void clean_invalidate(const void* address, size_t length) {
  if (Emulator* emulator = Emulator::running()) {
    emulator->shadow().clean_invalidate(reinterpret_cast<uintptr_t>(address), length);
  }
}

static_assert(EmulatorLibrary::kLine == Shadow::kLine);
constexpr EmulatorLibrary kLibrary = {EmulatorLibrary::kVersion, fails_iova_test, start, clean, clean_invalidate};

}  // namespace
}  // namespace dapple::provider

extern "C" __attribute__((visibility("default"))) const dapple::provider::EmulatorLibrary* dapple_emulator_library() {
  return &dapple::provider::kLibrary;
}
