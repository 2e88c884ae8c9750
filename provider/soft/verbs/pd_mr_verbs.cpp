// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Protection domains and memory regions.
#include <errno.h>

#include <new>
#include <utility>

#include "coherence/persistence.hpp"
#include "provider/soft/memory/mapped_range.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/region_refusals.hpp"

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

// 0, or the errno for these rights and this memory.
int check_region(const DeviceAttributes& limits, const void* address, size_t length, uint32_t access) {
  // On-demand paging is not an optional right.
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) {
    return refuse_access(IBV_ACCESS_ON_DEMAND, "the device has no on-demand paging",
                         "Look at odp_caps of ibv_query_device_ex() first, and register without it.", EOPNOTSUPP);
  }
  if (const uint32_t unknown = access & ~(kKnownAccess | kOptionalAccess); unknown != 0) {
    return refuse_access(unknown, "the device does not know it",
                         "Initialize access, and use only constants of enum ibv_access_flags.", EINVAL);
  }
  if ((access & kRemoteChanges) != 0 && (access & roce::kLocalWrite) == 0) {
    return refuse_access(access & kRemoteChanges, "lacks IBV_ACCESS_LOCAL_WRITE, which these rights need",
                         "Add IBV_ACCESS_LOCAL_WRITE: a peer may only change what the device may write.", EINVAL);
  }
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
  const bool write = (access & roce::kLocalWrite) != 0;
  const int error = probe_mapped_range(address, length, write);
  return error == 0 ? 0 : refuse_range(address, length, write, error);
}

RegionConfig config_of(const Pd& pd, void* address, size_t length, uint64_t iova, uint32_t access) {
  return {
      .domain = pd.number,
      .memory = static_cast<std::byte*>(address),
      .length = length,
      .iova = (access & roce::kZeroBased) != 0 ? 0 : iova,
      .access = access & (kKnownAccess & ~kHugePages),
  };
}

ResourceRow row_of(const Mr& mr, size_t length) {
  ResourceRow row = context_of(mr.abi.mr.context)->row_of(ResourceKind::kRegion);
  row.pd = mr.pd->shown.place();
  row.number = mr.abi.mr.lkey;
  row.length = length;
  return row;
}

// Lets peers on this host reach the region without this process' help: by the rights that they have, and for the bytes
// of Sends. A region whose iova is not its address may be the shadow of an emulated device, so packets serve it.
void publish(Mr& mr, const RegionConfig& config) {
  if (config.iova != reinterpret_cast<uintptr_t>(config.memory)) return;
  mr.published = context_of(mr.abi.mr.context)
                     ->runtime.transports()
                     .publication()
                     .publish(KeyDescription{.key = mr.abi.mr.rkey,
                                             .domain = config.domain,
                                             .access = config.access,
                                             .address = config.iova,
                                             .length = config.length});
}

// No peer reaches it afterwards, except by packets.
void revoke(Mr& mr) {
  context_of(mr.abi.mr.context)->runtime.transports().publication().revoke_key(std::exchange(mr.published, 0));
}

// 0, or an errno; then the region is as before.
int change_region(ibv_mr* ibv, int flags, ibv_pd* new_pd, void* address, size_t length, int access) {
  if (!usable(ibv->context)) return refuse_child();
  constexpr int kKnown = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  if (flags == 0 || (flags & ~kKnown) != 0) {
    return refuse(EINVAL,
                  "flags is 0x%x.\nUse IBV_REREG_MR_CHANGE_TRANSLATION, IBV_REREG_MR_CHANGE_PD and "
                  "IBV_REREG_MR_CHANGE_ACCESS, at least one of them.",
                  static_cast<unsigned>(flags));
  }
  Mr* mr = ours<Mr>(ibv);
  MemoryTable& memory = context_of(ibv->context)->memory;
  RegionConfig config;
  int error = memory.region_config(ibv->lkey, config);
  if (error != 0) return refuse_region(ibv->lkey, ibv->addr, ibv->length, error);
  Pd* pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? ours<Pd>(new_pd) : mr->pd;
  const uint32_t rights =
      (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? static_cast<uint32_t>(access) : static_cast<uint32_t>(mr->abi.access);
  uint64_t iova = config.iova;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    iova = reinterpret_cast<uintptr_t>(address);
  } else {
    address = config.memory;
    length = config.length;
  }
  error = check_region(context_of(ibv->context)->attributes(), address, length, rights);
  if (error != 0) return error;
  revoke(*mr);
  const RegionConfig changed = config_of(*pd, address, length, iova, rights);
  error = memory.change_region(ibv->lkey, changed);
  publish(*mr, error == 0 ? changed : config);
  if (error != 0) return refuse_region(ibv->lkey, ibv->addr, ibv->length, error);
  AnnouncedQueue::end_all();
  pd->users.fetch_add(1);
  leave(mr->pd->users);
  mr->pd = pd;
  mr->abi.access = static_cast<int>(rights);
  mr->shown.show(row_of(*mr, length));
  return 0;
}

}  // namespace

ibv_pd* alloc_pd(ibv_context* ibv) {
  if (!usable(ibv)) return failed(refuse_child());
  CountedObject place = context_of(ibv)->objects.take(ObjectKind::kPd);
  Pd* pd = place ? new (std::nothrow) Pd : nullptr;
  if (pd == nullptr) return failed(refuse_limit(*context_of(ibv), ObjectKind::kPd));
  pd->place_in_limit = std::move(place);
  pd->number = context_of(ibv)->next_domain.fetch_add(1);
  pd->ibv.context = ibv;
  pd->ibv.handle = pd->number;
  pd->shown = context_of(ibv)->resources().add(context_of(ibv)->row_of(ResourceKind::kPd));
  context_of(ibv)->live_objects.fetch_add(1);
  return &pd->ibv;
}

int dealloc_pd(ibv_pd* ibv) {
  Pd* pd = ours<Pd>(ibv);
  if (const uint32_t users = pd->users.load(); users != 0) {
    return refuse(
        EBUSY,
        "%u objects of the protection domain are left.\n"
        "Destroy its queue pairs, shared receive queues and address handles, and deregister its memory first.",
        users);
  }
  leave(context_of(ibv->context)->live_objects);
  delete pd;
  return 0;
}

ibv_mr* reg_mr(ibv_pd* ibv, void* address, size_t length, uint64_t iova, int access) {
  if (!usable(ibv->context)) return failed(refuse_child());
  const auto rights = static_cast<uint32_t>(access);
  int error = check_region(context_of(ibv->context)->attributes(), address, length, rights);
  if (error != 0) return failed(error);
  Pd* pd = ours<Pd>(ibv);
  CountedObject place = context_of(ibv->context)->objects.take(ObjectKind::kRegion);
  Mr* mr = place ? new (std::nothrow) Mr : nullptr;
  if (mr == nullptr) return failed(refuse_limit(*context_of(ibv->context), ObjectKind::kRegion));
  mr->place_in_limit = std::move(place);
  uint32_t key = 0;
  const RegionConfig config = config_of(*pd, address, length, iova, rights);
  error = context_of(ibv->context)->memory.add_region(config, key);
  if (error != 0) {
    delete mr;
    return failed(refuse_region(key, address, length, error));
  }
  pd->users.fetch_add(1);
  mr->pd = pd;
  mr->abi.type = abi::kMrTypeMr;
  mr->abi.access = access;
  ibv_mr& shown = mr->abi.mr;
  shown.context = ibv->context;
  shown.pd = ibv;
  shown.addr = address;
  shown.length = length;
  shown.handle = key >> 8;
  shown.lkey = key;
  shown.rkey = key;
  publish(*mr, config);
  mr->shown = context_of(ibv->context)->resources().add(row_of(*mr, length));
  return &shown;
}

ibv_mr* reg_mr_ex(ibv_pd* pd, provider::RegionInitAttr* attr) {
  constexpr uint64_t kKnown = provider::kRegionInitIova | provider::kRegionInitAddr;
  if (const uint64_t unknown = attr->comp_mask & ~kKnown; unknown != 0) {
    return failed(refuse(EOPNOTSUPP,
                         "comp_mask has 0x%llx, which the device does not know.\n"
                         "Register memory by its address; the device has no dma-buf.",
                         static_cast<unsigned long long>(unknown)));
  }
  if ((attr->comp_mask & provider::kRegionInitAddr) == 0) {
    return failed(refuse(EINVAL, "comp_mask lacks IBV_REG_MR_MASK_ADDR.\nSet addr, and this bit."));
  }
  const uint64_t iova =
      (attr->comp_mask & provider::kRegionInitIova) != 0 ? attr->iova : reinterpret_cast<uintptr_t>(attr->addr);
  return reg_mr(pd, attr->addr, attr->length, iova, attr->access);
}

// The device copies with the CPU, which may not have access to a dma-buf's memory.
ibv_mr* reg_dmabuf_mr(ibv_pd*, uint64_t, size_t, uint64_t, int, int) {
  return failed(refuse(EOPNOTSUPP,
                       "the device copies with the CPU, which may have no access to a dma-buf.\n"
                       "Register ordinary memory."));
}

int rereg_mr(ibv_mr* ibv, int flags, ibv_pd* new_pd, void* address, size_t length, int access) {
  const int error = change_region(ibv, flags, new_pd, address, length, access);
  // libibverbs replaces the result by a number of its own, so the reason is in errno, as after a system call.
  if (error != 0) errno = error;
  return error;
}

int dereg_mr(ibv_mr* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  Mr* mr = ours<Mr>(ibv);
  MemoryTable& memory = context_of(ibv->context)->memory;
  revoke(*mr);
  const int error = memory.remove_region(ibv->lkey);
  if (error != 0) {
    RegionConfig config;
    if (memory.region_config(ibv->lkey, config) == 0) publish(*mr, config);
    return refuse_region(ibv->lkey, ibv->addr, ibv->length, error);
  }
  AnnouncedQueue::end_all();
  leave(mr->pd->users);
  delete mr;
  return 0;
}

}  // namespace dapple::soft::verbs
