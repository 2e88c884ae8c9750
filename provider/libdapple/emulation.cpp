// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/libdapple/emulation.hpp"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "provider/device/decision.hpp"
#include "provider/libdapple/plugin.hpp"
#include "provider/overlay/fork_lock.hpp"

namespace dapple::provider {
namespace {

using coherence::BackEnd;

const EmulatorLibrary* emulator;
BackEnd emulating;

void clean(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  emulator->clean(address, length);
  const BackEnd& cpu = coherence::cpu_back_end();
  if (cpu.cpu.can_clean) cpu.clean_range(line_size_bytes, address, length);
}

void clean_invalidate(uint32_t line_size_bytes, const void* address, size_t length) noexcept {
  emulator->clean_invalidate(address, length);
  const BackEnd& cpu = coherence::cpu_back_end();
  if (cpu.cpu.can_clean_invalidate) cpu.clean_invalidate_range(line_size_bytes, address, length);
}

// The emulator lies in a folder beside this library, as the preload library does.
void* load() {
  Dl_info self;
  char path[4096];
  if (dladdr(reinterpret_cast<void*>(&load), &self) == 0 || self.dli_fname == nullptr) return nullptr;
  const char* slash = strrchr(self.dli_fname, '/');
  const int folder = slash == nullptr ? 0 : static_cast<int>(slash + 1 - self.dli_fname);
  const int length = snprintf(path, sizeof path, "%.*sdapple/libdapple-emulator.so", folder, self.dli_fname);
  if (length < 0 || static_cast<size_t>(length) >= sizeof path) return nullptr;
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

const char* install(void* handle) {
  if (handle == nullptr) return "libdapple-emulator.so of the package dapple-provider cannot be loaded";
  const auto find = reinterpret_cast<FindEmulatorLibrary>(dlsym(handle, kEmulatorSymbol));
  const EmulatorLibrary* library = find == nullptr ? nullptr : find();
  if (library == nullptr || library->version != EmulatorLibrary::kVersion) {
    return "libdapple-emulator.so and libdapple are of different releases";
  }
  emulator = library;
  emulating = coherence::cpu_back_end();
  emulating.cpu.can_clean = true;
  emulating.cpu.can_clean_invalidate = true;
  emulating.clean_range = clean;
  emulating.clean_invalidate_range = clean_invalidate;
  return nullptr;
}

}  // namespace

constinit std::atomic<const BackEnd*> chosen_sync_back_end = nullptr;

RegionPolicy* start_emulation(ibv_context* context, bool is_new, const char** why) noexcept {
  if (!prepare_for_forks()) {
    *why = "no memory is available for the emulator";
    return nullptr;
  }
  // Before the lock, because the loader has its own lock.
  void* handle = load();
  {
    const WriteLock lock;
    if (emulator == nullptr) *why = install(handle);
    if (emulator == nullptr) return nullptr;
  }
  if (is_new) {
    *why = emulator->fails_iova_test(context);
    if (*why != nullptr) return nullptr;
  }
  const auto find = reinterpret_cast<FindShowFinding>(find_in_plugin(kFindShowFinding));
  const ShowFinding show = find == nullptr ? nullptr : find();
  const WriteLock lock;
  RegionPolicy* policy = emulator->start(show, why);
  if (policy != nullptr) chosen_sync_back_end.store(&emulating, std::memory_order_release);
  return policy;
}

void fill_emulated_attr(dappledv_device_attr& attr) noexcept {
  attr.coherence = DAPPLEDV_COHERENCE_NONCOHERENT_CPU;
  attr.reason = DAPPLEDV_REASON_EMULATOR;
  attr.certainty = certainty_of(attr.reason);
  attr.line_size = EmulatorLibrary::kLine;
  attr.writeback_granule = EmulatorLibrary::kLine;
  attr.sync_for_device_required = 1;
  attr.sync_for_cpu_required = 1;
  attr.sync_complete = 1;
  attr.sync_supported = 1;
  attr.explanation = "emulator: the device works on shadows of the program's memory";
}

const coherence::BackEnd& choose_sync_back_end() noexcept {
  const BackEnd* none = nullptr;
  const BackEnd* cpu = &coherence::cpu_back_end();
  chosen_sync_back_end.compare_exchange_strong(none, cpu, std::memory_order_acq_rel);
  return none == nullptr ? *cpu : *none;
}

}  // namespace dapple::provider
