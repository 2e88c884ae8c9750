// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The exported functions. Everything is compiled hidden; what the header declares is not.
#pragma GCC visibility push(default)
#include <infiniband/dappledv.h>
#pragma GCC visibility pop

#include <cstddef>

#include "coherence/cache.hpp"
#include "provider/keep_errno.hpp"
#include "provider/overlay/entry.hpp"
#include "provider/overlay/overlay.hpp"
#include "provider/persistence.hpp"
#include "provider/query.hpp"
#include "provider/sync.hpp"

// The structure is an ABI: fields may be added at the end only.
static_assert(offsetof(dappledv_device_attr, coherence) == 8);
static_assert(offsetof(dappledv_device_attr, line_size) == 16);
static_assert(offsetof(dappledv_device_attr, sync_for_device_required) == 24);
static_assert(offsetof(dappledv_device_attr, sync_supported) == 27);
static_assert(offsetof(dappledv_device_attr, clean_instruction) == 32);
static_assert(offsetof(dappledv_device_attr, certainty) == 28);
static_assert(offsetof(dappledv_device_attr, caches_persistent) == 32 + 3 * sizeof(char*));
static_assert(offsetof(dappledv_device_attr, max_windows) == 44 + 3 * sizeof(char*));
static_assert(offsetof(dappledv_device_attr, persist_instruction) == 72 + 3 * sizeof(char*));
static_assert(offsetof(dappledv_device_attr, persist_supported) == 72 + 5 * sizeof(char*));
static_assert(sizeof(dappledv_device_attr) == 80 + 5 * sizeof(char*));

using dapple::coherence::cpu_back_end;
using dapple::coherence::machine_persistence;

namespace {

bool sync_persists(const dappledv_device_attr& attr) {
  return (attr.comp_mask & DAPPLEDV_DEVICE_ATTR_PERSISTENCE) != 0 && attr.sync_persists != 0;
}

}  // namespace

int dappledv_query_device(ibv_context* context, dappledv_device_attr* attr) noexcept {
  return dappledv_query_device_override(context, nullptr, attr);
}

int dappledv_query_device_override(ibv_context* context, const char* coherence, dappledv_device_attr* attr) noexcept {
  return dapple::provider::query_device(dapple::provider::this_machine(), context, coherence, attr);
}

int dappledv_override_region(const dappledv_device_attr* device, dappledv_coherence coherence,
                             dappledv_device_attr* region) noexcept {
  const dapple::provider::KeepErrno keep;
  return dapple::provider::override_region(cpu_back_end().cpu, device, coherence, region);
}

int dappledv_persist_region(const dappledv_device_attr* device, dappledv_device_attr* region) noexcept {
  // The first call looks at the machine's files.
  const dapple::provider::KeepErrno keep;
  return dapple::provider::persist_region(machine_persistence(), device, region);
}

void dappledv_sync_for_device(const dappledv_device_attr* attr, const iovec* ranges, size_t num_ranges) noexcept {
  dapple::provider::sync_for_device(cpu_back_end(), attr->coherence, ranges, num_ranges);
  if (sync_persists(*attr)) {
    dapple::provider::persist_ranges(cpu_back_end(), machine_persistence(), ranges, num_ranges);
  }
}

void dappledv_sync_for_cpu(const dappledv_device_attr* attr, const iovec* ranges, size_t num_ranges) noexcept {
  dapple::provider::sync_for_cpu(cpu_back_end(), attr->coherence, ranges, num_ranges);
  if (sync_persists(*attr)) {
    dapple::provider::persist_ranges(cpu_back_end(), machine_persistence(), ranges, num_ranges);
  }
}

int dappledv_attach(ibv_context* context, uint64_t flags) noexcept {
  return dapple::provider::attach_loaded(context, flags);
}

const char* dappledv_attach_obstacle(ibv_context* context) noexcept {
  return dapple::provider::attach_obstacle(dapple::provider::loaded_verbs_library(), context);
}

int dappledv_sync_mr_for_device(ibv_context* context, const ibv_sge* segments, size_t num_segments) noexcept {
  return dapple::provider::sync_regions(cpu_back_end(), dapple::provider::SyncDirection::kForDevice, context, segments,
                                        num_segments);
}

int dappledv_sync_mr_for_cpu(ibv_context* context, const ibv_sge* segments, size_t num_segments) noexcept {
  return dapple::provider::sync_regions(cpu_back_end(), dapple::provider::SyncDirection::kForCpu, context, segments,
                                        num_segments);
}

const char* dappledv_coherence_str(dappledv_coherence coherence) noexcept {
  switch (coherence) {
    case DAPPLEDV_COHERENCE_UNKNOWN:
      return "unknown";
    case DAPPLEDV_COHERENCE_COHERENT:
      return "coherent";
    case DAPPLEDV_COHERENCE_NONCOHERENT_CPU:
      return "non-coherent (CPU caches)";
    case DAPPLEDV_COHERENCE_NONCOHERENT_IO:
      return "non-coherent (CPU caches and I/O side)";
  }
  return "invalid";
}

const char* dappledv_reason_str(dappledv_reason reason) noexcept {
  switch (reason) {
    case DAPPLEDV_REASON_NONE:
      return "none";
    case DAPPLEDV_REASON_OVERRIDE_ENVIRONMENT:
      return "override (environment)";
    case DAPPLEDV_REASON_OVERRIDE_PARAMETER:
      return "override (configuration)";
    case DAPPLEDV_REASON_SOFTWARE_DEVICE:
      return "software device";
    case DAPPLEDV_REASON_KERNEL:
      return "kernel";
    case DAPPLEDV_REASON_FIRMWARE:
      return "firmware";
    case DAPPLEDV_REASON_ARCHITECTURE:
      return "architecture's rule";
    case DAPPLEDV_REASON_ASSUMED:
      return "assumed";
    case DAPPLEDV_REASON_OVERRIDE_REGION:
      return "override (region)";
    case DAPPLEDV_REASON_EMULATOR:
      return "emulator";
  }
  return "invalid";
}

const char* dappledv_certainty_str(dappledv_certainty certainty) noexcept {
  switch (certainty) {
    case DAPPLEDV_CERTAINTY_NONE:
      return "none";
    case DAPPLEDV_CERTAINTY_OVERRIDE:
      return "override";
    case DAPPLEDV_CERTAINTY_KERNEL:
      return "kernel";
    case DAPPLEDV_CERTAINTY_FIRMWARE:
      return "firmware";
    case DAPPLEDV_CERTAINTY_ARCHITECTURE:
      return "architecture's rule";
    case DAPPLEDV_CERTAINTY_ASSUMED:
      return "assumed";
  }
  return "invalid";
}

const char* dappledv_answer_str(dappledv_answer answer) noexcept {
  switch (answer) {
    case DAPPLEDV_ANSWER_UNKNOWN:
      return "unknown";
    case DAPPLEDV_ANSWER_NO:
      return "no";
    case DAPPLEDV_ANSWER_YES:
      return "yes";
  }
  return "invalid";
}
