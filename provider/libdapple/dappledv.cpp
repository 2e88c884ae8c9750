// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The exported functions. All other symbols are compiled hidden.
#pragma GCC visibility push(default)
#include <infiniband/dappledv.h>
#include <infiniband/dappledv_failure.h>
#pragma GCC visibility pop

#include <errno.h>
#include <stdlib.h>

#include <cstddef>

#include "coherence/cache.hpp"
#include "provider/common/host_guards.hpp"
#include "provider/common/settings.hpp"
#include "provider/device/override.hpp"
#include "provider/device/range.hpp"
#include "provider/device/region.hpp"
#include "provider/device/sync.hpp"
#include "provider/libdapple/emulation.hpp"
#include "provider/libdapple/entry.hpp"
#include "provider/libdapple/explained.hpp"
#include "provider/libdapple/fault_calls.hpp"
#include "provider/libdapple/last_refusal.hpp"
#include "provider/libdapple/memory_marks.hpp"
#include "provider/libdapple/query.hpp"
#include "provider/overlay/overlay.hpp"

// The structures are an ABI: fields may be added at the end only.
static_assert(offsetof(dappledv_device_attr, coherence) == 8);
static_assert(offsetof(dappledv_device_attr, line_size) == 20);
static_assert(offsetof(dappledv_device_attr, sync_for_device_required) == 28);
static_assert(offsetof(dappledv_device_attr, persist_supported) == 32);
static_assert(offsetof(dappledv_device_attr, pci_no_snoop) == 35);
static_assert(offsetof(dappledv_device_attr, clean_instruction) == 40);
static_assert(offsetof(dappledv_device_attr, refusal) == 40 + 4 * sizeof(char*));
static_assert(sizeof(dappledv_device_attr) == 40 + 5 * sizeof(char*));
static_assert(offsetof(dappledv_region_attr, coherence) == 8);
static_assert(offsetof(dappledv_region_attr, persistence) == 20);
static_assert(offsetof(dappledv_region_attr, sync_for_device_required) == 24);
static_assert(offsetof(dappledv_region_attr, dmabuf) == 28);
static_assert(offsetof(dappledv_region_attr, dmabuf_fd) == 32);
static_assert(offsetof(dappledv_region_attr, explanation) == 40);
static_assert(sizeof(dappledv_region_attr) == 40 + sizeof(char*));
static_assert(offsetof(dappledv_range_attr, length) == 8);
static_assert(offsetof(dappledv_range_attr, persistence) == 24);
static_assert(offsetof(dappledv_range_attr, cxl) == 28);
static_assert(sizeof(dappledv_range_attr) == 32 + sizeof(char*));

using dapple::coherence::cpu_back_end;
using dapple::provider::explained;
using dapple::provider::SyncDirection;

namespace {

[[gnu::always_inline]] inline int sync(SyncDirection direction, const dappledv_region_attr* region, const iovec* ranges,
                                       size_t num_ranges) noexcept {
  if (region == nullptr) return dapple::provider::refuse_null_region();
  return dapple::provider::sync_region(dapple::provider::sync_back_end(), direction, *region, ranges, num_ranges);
}

}  // namespace

int dappledv_query_device(ibv_context* context, dappledv_device_attr* attr) noexcept {
  return explained("dappledv_query_device", [=]() noexcept {
    return dapple::provider::query_device(dapple::provider::this_machine(), context, nullptr, attr);
  });
}

int dappledv_query_device_override(ibv_context* context, const char* coherence, dappledv_device_attr* attr) noexcept {
  return explained("dappledv_query_device_override", [=]() noexcept {
    return dapple::provider::query_device(dapple::provider::this_machine(), context, coherence, attr);
  });
}

int dappledv_init_region(const dappledv_device_attr* device, dappledv_region_attr* region) noexcept {
  return explained("dappledv_init_region", [=]() noexcept { return dapple::provider::init_region(device, region); });
}

int dappledv_override_region(dappledv_region_attr* region, dappledv_coherence coherence) noexcept {
  const dapple::ErrnoGuard keep;
  return explained("dappledv_override_region",
                   [=]() noexcept { return dapple::provider::override_region(cpu_back_end().cpu, region, coherence); });
}

int dappledv_persist_region(dappledv_region_attr* region, dappledv_persistence domain) noexcept {
  // The first call looks at the machine's files.
  const dapple::ErrnoGuard keep;
  return explained("dappledv_persist_region", [=]() noexcept {
    std::optional<dappledv_persistence> said;
    const char* value = dapple::provider::Settings::of_environment().persistence;
    if (!dapple::provider::read_persistence(value, said)) return dapple::provider::refuse_persistence(value);
    return dapple::provider::persist_region(cpu_back_end().cpu, dapple::coherence::machine_persistence().domain, said,
                                            region, domain);
  });
}

int dappledv_dmabuf_region(dappledv_region_attr* region, int fd) noexcept {
  return explained("dappledv_dmabuf_region", [=]() noexcept { return dapple::provider::dmabuf_region(region, fd); });
}

int dappledv_sync_for_device(const dappledv_region_attr* region, const iovec* ranges, size_t num_ranges) noexcept {
  return explained("dappledv_sync_for_device",
                   [=]() noexcept { return sync(SyncDirection::kForDevice, region, ranges, num_ranges); });
}

int dappledv_sync_for_cpu(const dappledv_region_attr* region, const iovec* ranges, size_t num_ranges) noexcept {
  return explained("dappledv_sync_for_cpu",
                   [=]() noexcept { return sync(SyncDirection::kForCpu, region, ranges, num_ranges); });
}

int dappledv_query_range(const void* address, size_t length, dappledv_range_attr* attr) noexcept {
  return explained("dappledv_query_range", [=]() noexcept {
    return dapple::provider::query_range(dapple::provider::Path(), reinterpret_cast<uintptr_t>(address), length, attr);
  });
}

int dappledv_attach(ibv_context* context, uint64_t flags) noexcept {
  return explained("dappledv_attach", [=]() noexcept { return dapple::provider::attach_loaded(context, flags); });
}

const char* dappledv_attach_obstacle(ibv_context* context) noexcept {
  return dapple::provider::attach_obstacle(dapple::provider::verbs_library_of(context), context);
}

int dappledv_sync_mr_for_device(ibv_context* context, const ibv_sge* segments, size_t num_segments,
                                size_t* bad_segment) noexcept {
  return explained("dappledv_sync_mr_for_device", [=]() noexcept {
    return dapple::provider::sync_regions(dapple::provider::sync_back_end(), SyncDirection::kForDevice, context,
                                          segments, num_segments, bad_segment);
  });
}

int dappledv_sync_mr_for_cpu(ibv_context* context, const ibv_sge* segments, size_t num_segments,
                             size_t* bad_segment) noexcept {
  return explained("dappledv_sync_mr_for_cpu", [=]() noexcept {
    return dapple::provider::sync_regions(dapple::provider::sync_back_end(), SyncDirection::kForCpu, context, segments,
                                          num_segments, bad_segment);
  });
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
    case DAPPLEDV_COHERENCE_BOUNCED:
      return "non-coherent (bounced copies)";
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
    case DAPPLEDV_REASON_DMABUF:
      return "dma-buf";
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

int dappledv_fault_next(const char* verb, int error) noexcept {
  return dapple::provider::fault_next(verb, error);
}

int dappledv_fault_clear() noexcept {
  return dapple::provider::fault_clear();
}

int dappledv_fault_pending(const char* verb) noexcept {
  return dapple::provider::fault_pending(verb);
}

const char* dappledv_refusal(unsigned* count) noexcept {
  return dapple::provider::last_refusal(count);
}

int dappledv_report_failure(const char* text, const char* remedy) noexcept {
  return dapple::provider::report_failure(text, remedy) ? 1 : 0;
}

int dappledv_note_call(dappledv_call* call) noexcept {
  return dapple::provider::note_call(*call) ? 1 : 0;
}

int dappledv_report_missing_call(const char* text, const char* remedy, const dappledv_call* after) noexcept {
  return dapple::provider::report_missing_call(text, remedy, *after) ? 1 : 0;
}

void dappledv_mark_free(const void* block, size_t size) noexcept {
  dapple::provider::mark_memory(block, size, true);
}

void dappledv_mark_used(const void* block, size_t size) noexcept {
  dapple::provider::mark_memory(block, size, false);
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

const char* dappledv_persistence_str(dappledv_persistence persistence) noexcept {
  switch (persistence) {
    case DAPPLEDV_PERSISTENCE_UNSPECIFIED:
      return "unspecified";
    case DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER:
      return "memory_controller";
    case DAPPLEDV_PERSISTENCE_CPU_CACHES:
      return "cpu_cache";
  }
  return "invalid";
}

const char* dappledv_memory_str(dappledv_memory memory) noexcept {
  switch (memory) {
    case DAPPLEDV_MEMORY_UNKNOWN:
      return "unknown";
    case DAPPLEDV_MEMORY_ANONYMOUS:
      return "the program's own";
    case DAPPLEDV_MEMORY_PAGE_CACHE:
      return "page cache";
    case DAPPLEDV_MEMORY_DAX_FILE:
      return "file, mapped directly (fsdax)";
    case DAPPLEDV_MEMORY_DAX_DEVICE:
      return "device of memory (devdax)";
    case DAPPLEDV_MEMORY_DMABUF:
      return "dma-buf";
    case DAPPLEDV_MEMORY_DEVICE:
      return "device";
  }
  return "invalid";
}

const char* dappledv_caching_str(dappledv_caching caching) noexcept {
  switch (caching) {
    case DAPPLEDV_CACHING_UNKNOWN:
      return "unknown";
    case DAPPLEDV_CACHING_WRITE_BACK:
      return "write-back";
    case DAPPLEDV_CACHING_WRITE_COMBINING:
      return "write-combining";
    case DAPPLEDV_CACHING_UNCACHED:
      return "uncached";
  }
  return "invalid";
}
