// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory regions.
#include <errno.h>

#include <cassert>
#include <memory>
#include <new>
#include <utility>

#include "provider/soft/gpu/gpu_search.hpp"
#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/progress/runtime.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/memory/imported.hpp"
#include "provider/soft/verbs/memory/region_checks.hpp"
#include "provider/soft/verbs/memory/region_refusals.hpp"
#include "provider/soft/weak_order/waits.hpp"

namespace dapple::soft::verbs {
namespace {

RegionConfig config_of(const Pd& pd, void* address, size_t length, uint64_t iova, uint32_t access) {
  return {
      .domain = pd.number,
      .memory = static_cast<std::byte*>(address),
      .length = length,
      .iova = (access & roce::kZeroBased) != 0 ? 0 : iova,
      .access = kept_access(access),
      .kind = (access & IBV_ACCESS_ON_DEMAND) != 0 ? RegionKind::kOnDemand : RegionKind::kPlain,
  };
}

ResourceRow row_of(const Mr& mr, size_t length) {
  ResourceRow row = context_of(mr.abi.mr.context)->row_of(ResourceKind::kRegion);
  row.pd = mr.pd->lowest().shown.row_number();
  row.number = mr.abi.mr.lkey;
  row.length = length;
  if (mr.pages != nullptr) row.type = kOnDemandRegion;
  return row;
}

// The pages that the region needs. False if there is no memory for them.
bool make_pages(RegionConfig& config, std::unique_ptr<OnDemandPages>& pages) {
  if (config.kind != RegionKind::kOnDemand) return true;
  pages = OnDemandPages::make(config.memory, config.length);
  config.pages = pages.get();
  return pages != nullptr;
}

// A GPU has the region's memory, unless `gpu` is null.
void set_gpu(RegionConfig& config, GpuMemory* gpu) {
  if (gpu == nullptr) return;
  config.kind = RegionKind::kGpu;
  config.gpu = gpu;
}

// Lets peers on this host reach the region without this process' help: by the rights that they have, and for the bytes
// of Sends. A region whose iova is not its address may be the shadow of an emulated device, so packets serve it.
void publish(Context& context, Mr& mr, const RegionConfig& config) {
  if (config.kind != RegionKind::kPlain || config.iova != reinterpret_cast<uintptr_t>(config.memory)) return;
  assert(mr.published == 0);
  mr.published = context.runtime.transports().publication().publish(KeyDescription{.key = mr.abi.mr.rkey,
                                                                                   .domain = config.domain,
                                                                                   .access = config.access,
                                                                                   .address = config.iova,
                                                                                   .length = config.length});
}

// No peer reaches it afterwards, except by packets.
void revoke(Context& context, Mr& mr) {
  context.runtime.transports().publication().revoke_key(std::exchange(mr.published, 0));
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
  // libibverbs refuses the others: the region of a dma-buf cannot change.
  assert(mr->abi.type == abi::kMrTypeMr && mr->dmabuf.fd() < 0);
  MemoryTable& memory = context_of(ibv->context)->memory;
  RegionConfig config;
  int error = memory.region_config(ibv->lkey, config);
  if (error != 0) return refuse_region(ibv->lkey, ibv->addr, ibv->length, error);
  if (mr->dm != nullptr) {
    return refuse(EINVAL,
                  "the region's memory is the device's (ibv_reg_dm_mr()).\n"
                  "Deregister the region, and register the other memory.");
  }
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) {
    // Queue pairs of the region's file alone can have its domain. A file's contexts share its domains.
    if (new_pd == nullptr || &context_of(new_pd->context)->file != &context_of(ibv->context)->file)
      return refuse_other_device("protection domain");
    if (error = check_lives(new_pd); error != 0) return error;
  }
  Pd* pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? original_of<Pd>(new_pd) : mr->pd;
  const uint32_t rights =
      (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0 ? static_cast<uint32_t>(access) : static_cast<uint32_t>(mr->abi.access);
  if (mr->dma_handle != nullptr && (rights & IBV_ACCESS_ON_DEMAND) != 0) {
    return refuse_access(IBV_ACCESS_ON_DEMAND, "memory with a DMA handle cannot have it",
                         "Register the memory without a DMA handle.", EOPNOTSUPP);
  }
  uint64_t iova = config.iova;
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
    iova = reinterpret_cast<uintptr_t>(address);
  } else {
    address = config.memory;
    length = config.length;
  }
  std::unique_ptr<GpuMemory> gpu;
  error = check_region(context_of(ibv->context)->attributes(), address, length, rights, gpu);
  if (error != 0) return error;
  RegionConfig changed = config_of(*pd, address, length, iova, rights);
  set_gpu(changed, gpu.get());
  std::unique_ptr<OnDemandPages> pages;
  if (!make_pages(changed, pages)) return refuse_memory("memory regions");
  kept_bytes.await();
  revoke(*context_of(ibv->context), *mr);
  error = memory.change_region(ibv->lkey, changed);
  publish(*context_of(ibv->context), *mr, error == 0 ? changed : config);
  if (error != 0) return refuse_region(ibv->lkey, ibv->addr, ibv->length, error);
  AnnouncedQueue::end_all();
  pd->users.fetch_add(1);
  leave(mr->pd->users);
  mr->pd = pd;
  mr->abi.access = static_cast<int>(rights);
  mr->pages = std::move(pages);
  mr->gpu = std::move(gpu);
  mr->shown.show(row_of(*mr, length));
  if (mr->pages != nullptr) mr->pages->watched_by(mr->shown_pages);
  return 0;
}

// Enters a region into the table. Null with errno on failure.
std::unique_ptr<Mr> add_mr(ibv_pd* ibv, RegionConfig config, int access, std::unique_ptr<GpuMemory> gpu = nullptr) {
  if (const int error = check_lives(ibv); error != 0) return failed(error);
  CountedObject counted_object = context_of(ibv->context)->objects.take(ObjectKind::kRegion);
  std::unique_ptr<Mr> mr(counted_object ? new (std::nothrow) Mr : nullptr);
  if (mr == nullptr) return failed(refuse_limit(*context_of(ibv->context), ObjectKind::kRegion));
  mr->counted_object = std::move(counted_object);
  if (!make_pages(config, mr->pages)) return failed(refuse_memory("memory regions"));
  set_gpu(config, gpu.get());
  mr->gpu = std::move(gpu);
  uint32_t key = 0;
  const int error = context_of(ibv->context)->memory.add_region(config, key);
  if (error != 0) return failed(refuse_region(key, config.memory, config.length, error));
  mr->pd = original_of<Pd>(ibv);
  mr->pd->users.fetch_add(1);
  mr->abi.type = abi::kMrTypeMr;
  mr->abi.access = access;
  ibv_mr& shown = mr->abi.mr;
  shown.context = ibv->context;
  shown.pd = ibv;
  shown.length = config.length;
  shown.handle = key >> 8;
  shown.lkey = key;
  shown.rkey = key;
  publish(*context_of(ibv->context), *mr, config);
  context_of(ibv->context)->file.add(*mr);
  mr->shown = context_of(ibv->context)->resources().add(row_of(*mr, config.length));
  if (mr->pages != nullptr) mr->pages->watched_by(mr->shown_pages);
  return mr;
}

// The program gets it.
ibv_mr* made(std::unique_ptr<Mr> mr, void* address) {
  if (mr == nullptr) return nullptr;
  assert(mr->pd != nullptr && mr->importing.original == nullptr);
  mr->abi.mr.addr = address;
  return &mr.release()->abi.mr;
}

// What ibv_reg_mr_ex() needs for a dma-buf.
constexpr uint64_t kDmabuf = provider::kRegionInitFd | provider::kRegionInitFdOffset | provider::kRegionInitIova;

// Of ibv_reg_mr_ex(), by its address or as a dma-buf. `mask`: provider::kRegionInit.
ibv_mr* reg_memory(ibv_pd* pd, const provider::RegionInitAttr& attr, uint64_t mask) {
  if ((mask & provider::kRegionInitFd) != 0) {
    if (mask != kDmabuf) {
      return failed(refuse(EINVAL,
                           "comp_mask is 0x%llx, and a dma-buf needs its descriptor, the offset and the IOVA.\n"
                           "Set IBV_REG_MR_MASK_FD, IBV_REG_MR_MASK_FD_OFFSET and IBV_REG_MR_MASK_IOVA.",
                           static_cast<unsigned long long>(attr.comp_mask)));
    }
    return reg_dmabuf_mr(pd, attr.fd_offset, attr.length, attr.iova, attr.fd, attr.access);
  }
  if ((mask & provider::kRegionInitAddr) == 0)
    return failed(refuse(EINVAL, "comp_mask lacks IBV_REG_MR_MASK_ADDR.\nSet addr, and this bit."));
  const uint64_t iova = (mask & provider::kRegionInitIova) != 0 ? attr.iova : reinterpret_cast<uintptr_t>(attr.addr);
  return reg_mr(pd, attr.addr, attr.length, iova, attr.access);
}

// 0 or an error. As with mlx5, memory under on-demand paging has no handle.
int check_dma_handle(const ibv_pd& pd, const provider::RegionInitAttr& attr) {
  if (attr.dmah == nullptr || attr.dmah->context != pd.context) return refuse_other_device("DMA handle");
  if ((attr.access & IBV_ACCESS_ON_DEMAND) == 0) return 0;
  return refuse_access(IBV_ACCESS_ON_DEMAND, "memory with a DMA handle cannot have it",
                       "Register the memory without IBV_ACCESS_ON_DEMAND, or without dmah.", EOPNOTSUPP);
}

}  // namespace

ibv_mr* reg_mr(ibv_pd* ibv, void* address, size_t length, uint64_t iova, int access) {
  if (!usable(ibv->context)) return failed(refuse_child());
  const auto rights = static_cast<uint32_t>(access);
  std::unique_ptr<GpuMemory> gpu;
  int error = check_place_in_page("address", reinterpret_cast<uintptr_t>(address), iova);
  if (error != 0) return failed(error);
  error = check_region(context_of(ibv->context)->attributes(), address, length, rights, gpu);
  if (error != 0) return failed(error);
  if (is_implicit(address, length, rights) && iova != 0) {
    return failed(refuse(EINVAL,
                         "the region is the whole address space, and its IOVA is 0x%llx.\n"
                         "Register the address space (addr 0, length SIZE_MAX) with the IOVA 0.",
                         static_cast<unsigned long long>(iova)));
  }
  return made(add_mr(ibv, config_of(*ours<Pd>(ibv), address, length, iova, rights), access, std::move(gpu)), address);
}

// Only its lkey is valid, for any address.
ibv_mr* alloc_null_mr(ibv_pd* ibv) {
  if (!usable(ibv->context)) return failed(refuse_child());
  const RegionConfig config = {
      .domain = ours<Pd>(ibv)->number,
      .length = UINT64_MAX,
      .access = roce::kLocalWrite,
      .kind = RegionKind::kNull,
  };
  std::unique_ptr<Mr> mr = add_mr(ibv, config, IBV_ACCESS_LOCAL_WRITE);
  if (mr == nullptr) return nullptr;
  mr->abi.type = abi::kMrTypeNull;
  mr->abi.mr.rkey = 0;
  return made(std::move(mr), nullptr);
}

// As the kernel: by offsets alone.
ibv_mr* reg_dm_mr(ibv_pd* ibv, ibv_dm* device_memory, uint64_t offset, size_t length, unsigned access) {
  if (!usable(ibv->context)) return failed(refuse_child());
  constexpr uint32_t kKnown = roce::kLocalWrite | roce::kRemoteWrite | roce::kRemoteRead | roce::kRemoteAtomic |
                              roce::kZeroBased | IBV_ACCESS_OPTIONAL_RANGE;
  Dm* dm = original_of<Dm>(device_memory);
  if (&dm->context->file != &context_of(ibv->context)->file) return failed(refuse_other_device("device memory"));
  if (const uint32_t unknown = access & ~kKnown; unknown != 0) {
    return failed(refuse_access(unknown, "device memory cannot have it",
                                "Use the rights of Reads, Writes and atomics, and IBV_ACCESS_ZERO_BASED.", EINVAL));
  }
  if ((access & roce::kZeroBased) == 0) {
    return failed(refuse_access(access, "lacks IBV_ACCESS_ZERO_BASED: device memory has offsets instead of addresses",
                                "Add IBV_ACCESS_ZERO_BASED.", EINVAL));
  }
  if (!within(offset, length, 0, dm->length)) {
    return failed(refuse(EINVAL,
                         "the range (%zu bytes at the offset %llu) is not within the %llu bytes of device memory.\n"
                         "Register a range that ibv_alloc_dm() has given.",
                         length, static_cast<unsigned long long>(offset), static_cast<unsigned long long>(dm->length)));
  }
  if (const int error = check_remote_changes(access); error != 0) return failed(error);
  if (const int error = check_lives(*dm); error != 0) return failed(error);
  const RegionConfig config = config_of(*ours<Pd>(ibv), dm->memory.bytes() + offset, length, 0, access);
  std::unique_ptr<Mr> mr = add_mr(ibv, config, static_cast<int>(access));
  if (mr == nullptr) return nullptr;
  mr->dm = dm;
  dm->users.fetch_add(1);
  return made(std::move(mr), nullptr);
}

// With the attributes' DMA handle, or without one.
ibv_mr* reg_mr_ex(ibv_pd* pd, provider::RegionInitAttr* attr) {
  constexpr uint64_t kKnown = provider::kRegionInitAddr | kDmabuf | provider::kRegionInitDmaHandle;
  if (const uint64_t unknown = attr->comp_mask & ~kKnown; unknown != 0) {
    return failed(refuse(EOPNOTSUPP,
                         "comp_mask has 0x%llx, which the device does not know.\n"
                         "Register memory by its address, or a dma-buf.",
                         static_cast<unsigned long long>(unknown)));
  }
  const bool has_handle = (attr->comp_mask & provider::kRegionInitDmaHandle) != 0;
  if (has_handle) {
    if (const int error = check_dma_handle(*pd, *attr); error != 0) return failed(error);
  }
  ibv_mr* made = reg_memory(pd, *attr, attr->comp_mask & ~provider::kRegionInitDmaHandle);
  if (made != nullptr && has_handle) {
    Mr& mr = *ours<Mr>(made);
    mr.dma_handle = ours<DmaHandle>(attr->dmah);
    mr.dma_handle->users.fetch_add(1);
  }
  return made;
}

// The device copies with the CPU, so the exporter must have a mapping for it, unless a GPU's library copies.
ibv_mr* reg_dmabuf_mr(ibv_pd* ibv, uint64_t offset, size_t length, uint64_t iova, int fd, int access) {
  if (!usable(ibv->context)) return failed(refuse_child());
  const auto rights = static_cast<uint32_t>(access);
  const DeviceAttributes& limits = context_of(ibv->context)->attributes();
  if (const uint32_t lacking = rights & (uint32_t{IBV_ACCESS_ON_DEMAND} | roce::kFlushPersistent); lacking != 0) {
    return failed(
        refuse_access(lacking, "memory of a dma-buf cannot have it", "Register the dma-buf without it.", EOPNOTSUPP));
  }
  int error = check_rights(limits, length, rights);
  if (error != 0) return failed(error);
  error = check_place_in_page("offset", offset, iova);
  if (error != 0) return failed(error);
  MappedDmabuf dmabuf;
  std::unique_ptr<GpuMemory> gpu;
  error = dmabuf.map(fd, offset, length, (rights & roce::kLocalWrite) != 0);
  if (error == EOPNOTSUPP) {
    gpu = find_gpu_dmabuf(iova, offset, length, dmabuf.size()).memory;
    if (gpu != nullptr) error = 0;
  }
  if (error != 0) return failed(refuse_dmabuf(fd, offset, length, error));
  void* bytes = gpu == nullptr ? dmabuf.bytes() : reinterpret_cast<void*>(static_cast<uintptr_t>(iova));
  RegionConfig config = config_of(*ours<Pd>(ibv), bytes, length, iova, rights);
  config.kind = RegionKind::kDmabuf;
  config.dmabuf = dmabuf.fd();
  std::unique_ptr<Mr> mr = add_mr(ibv, config, access, std::move(gpu));
  if (mr == nullptr) return nullptr;
  mr->dmabuf = std::move(dmabuf);
  mr->abi.type = abi::kMrTypeDmabuf;
  return made(std::move(mr), reinterpret_cast<void*>(iova));
}

int rereg_mr(ibv_mr* ibv, int flags, ibv_pd* new_pd, void* address, size_t length, int access) {
  const int error = change_region(ibv, flags, new_pd, address, length, access);
  // libibverbs replaces the result by a number of its own, so the reason is in errno, as after a system call.
  if (error != 0) errno = error;
  return error;
}

int dereg_mr(ibv_mr* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  Mr* mr = original_of<Mr>(ibv);
  if (has_ended(*mr)) return refuse_ended("memory region", "ibv_dereg_mr()");
  // That of the original may be closed.
  Context& context = *context_of(ibv->context);
  MemoryTable& memory = context.memory;
  kept_bytes.await();
  revoke(context, *mr);
  const int error = memory.remove_region(ibv->lkey);
  if (error != 0) {
    RegionConfig config;
    if (memory.region_config(ibv->lkey, config) == 0) publish(context, *mr, config);
    return refuse_region(ibv->lkey, ibv->addr, ibv->length, error);
  }
  assert(mr->published == 0);
  AnnouncedQueue::end_all();
  leave(mr->pd->users);
  if (mr->dm != nullptr) leave(mr->dm->users);
  if (mr->dma_handle != nullptr) leave(mr->dma_handle->users);
  mr->dmabuf = {};
  mr->gpu = nullptr;
  mr->counted_object = {};
  mr->shown = {};
  end_object(context, *ours<Mr>(ibv));
  return 0;
}

}  // namespace dapple::soft::verbs
