// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/verbs/memory/region_checks.hpp"

#include <errno.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <utility>

#include "coherence/persistence.hpp"
#include "provider/soft/gpu/gpu_search.hpp"
#include "provider/soft/memory/mapped_range.hpp"
#include "provider/soft/memory/memory_table.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/verbs/memory/region_refusals.hpp"

namespace dapple::soft::verbs {
namespace {

// libibverbs' numbers, of which the older headers lack some.
constexpr uint32_t kHugePages = 1 << 7;
constexpr uint32_t kKnownAccess = roce::kLocalWrite | roce::kRemoteWrite | roce::kRemoteRead | roce::kRemoteAtomic |
                                  roce::kWindowBind | roce::kZeroBased | roce::kFlushGlobal | roce::kFlushPersistent |
                                  kHugePages;
constexpr uint32_t kOptionalAccess = IBV_ACCESS_OPTIONAL_RANGE;

static_assert(uint32_t{roce::kLocalWrite} == IBV_ACCESS_LOCAL_WRITE);
static_assert(uint32_t{roce::kRemoteWrite} == IBV_ACCESS_REMOTE_WRITE);
static_assert(uint32_t{roce::kRemoteRead} == IBV_ACCESS_REMOTE_READ);
static_assert(uint32_t{roce::kRemoteAtomic} == IBV_ACCESS_REMOTE_ATOMIC);
static_assert(uint32_t{roce::kWindowBind} == IBV_ACCESS_MW_BIND);
static_assert(uint32_t{roce::kZeroBased} == IBV_ACCESS_ZERO_BASED);

int refuse_empty(const void* address) {
  return refuse(EINVAL,
                "length is 0, and the address %p is the beginning of a page, so the region would have no page.\n"
                "Register at least one byte, or leave a buffer without bytes out.",
                address);
}

}  // namespace

uint32_t kept_access(uint32_t access) {
  return access & (kKnownAccess & ~kHugePages);
}

bool is_implicit(const void* address, size_t length, uint32_t access) {
  return (access & IBV_ACCESS_ON_DEMAND) != 0 && address == nullptr && length == SIZE_MAX;
}

int check_remote_changes(uint32_t access) {
  if ((access & kRemoteChanges) == 0 || (access & roce::kLocalWrite) != 0) return 0;
  return refuse_access(access & kRemoteChanges, "lacks IBV_ACCESS_LOCAL_WRITE, which these rights need",
                       "Add IBV_ACCESS_LOCAL_WRITE: a peer may only change what the device may write.", EINVAL);
}

int check_place_in_page(const char* name, uint64_t begin, uint64_t iova) {
  const uint64_t in_page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) - 1;
  if (((begin ^ iova) & in_page) == 0) return 0;
  return refuse(EINVAL,
                "the %s 0x%llx and the IOVA 0x%llx are at different places of a page.\n"
                "Choose an IOVA that differs from the %s by whole pages.",
                name, static_cast<unsigned long long>(begin), static_cast<unsigned long long>(iova), name);
}

int check_rights(const DeviceAttributes& limits, size_t length, uint32_t access) {
  // On-demand paging is not an optional right.
  const bool on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
  if (on_demand && (limits.features & kFeatureOnDemand) == 0) {
    return refuse_access(IBV_ACCESS_ON_DEMAND, "the device's identity (--as) has no on-demand paging",
                         "Look at odp_caps of ibv_query_device_ex() first, and register without it.", EOPNOTSUPP);
  }
  if (const uint32_t unknown = access & ~(kKnownAccess | kOptionalAccess | IBV_ACCESS_ON_DEMAND); unknown != 0) {
    return refuse_access(unknown, "the device does not know it",
                         "Initialize access, and use only constants of enum ibv_access_flags.", EINVAL);
  }
  if (const int error = check_remote_changes(access); error != 0) return error;
  if (length > limits.max_mr_size) {
    return refuse(EINVAL, "length is %zu, and max_mr_size of the device is %llu.\nRegister the memory in parts.",
                  length, static_cast<unsigned long long>(limits.max_mr_size));
  }
  const bool flushes = (access & (roce::kFlushGlobal | roce::kFlushPersistent)) != 0;
  if (flushes && (limits.features & kFeatureFlush) == 0) {
    return refuse_access(access & (roce::kFlushGlobal | roce::kFlushPersistent),
                         "the device's identity (--as) has no RDMA Flush",
                         "Look at device_cap_flags_ex first, or use an RDMA Read after the Writes.", EOPNOTSUPP);
  }
  if ((access & roce::kFlushPersistent) != 0 && !coherence::machine_persistence().possible) {
    return refuse_access(roce::kFlushPersistent, "this machine cannot make memory persistent",
                         "Look at device_cap_flags_ex first, or set DAPPLE_PERSISTENCE as dapple.7 explains.",
                         EOPNOTSUPP);
  }
  return 0;
}

int check_region(const DeviceAttributes& limits, const void* address, size_t length, uint32_t access,
                 std::unique_ptr<GpuMemory>& gpu) {
  // max_mr_size does not hold for the whole address space.
  if (const int error = check_rights(limits, is_implicit(address, length, access) ? 0 : length, access); error != 0)
    return error;
  // On-demand memory need not be there yet.
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return 0;
  FoundGpuMemory found = length == 0 ? FoundGpuMemory() : find_gpu_memory(address, length);
  if (found.error != 0) return refuse_gpu(address, length, found);
  if (found.memory != nullptr) {
    if ((access & roce::kFlushPersistent) != 0) {
      return refuse_access(roce::kFlushPersistent, "a GPU's memory cannot have it", "Register the memory without it.",
                           EOPNOTSUPP);
    }
    gpu = std::move(found.memory);
    return 0;
  }
  // As in the kernel: a region has at least one page, that of its address if it has no bytes.
  if (length == 0) {
    if (const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
        reinterpret_cast<uintptr_t>(address) % page == 0)
      return refuse_empty(address);
    length = 1;
  }
  const bool write = (access & roce::kLocalWrite) != 0;
  const int error = probe_mapped_range(address, length, write);
  return error == 0 ? 0 : refuse_range(address, length, write, error);
}

}  // namespace dapple::soft::verbs
