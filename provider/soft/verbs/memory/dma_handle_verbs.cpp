// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// DMA handles, which libibverbs has since 59: hints for the bus between a NIC and memory (PCIe's TLP processing hints).
// The checks are mlx5's and the kernel's, in their order.
#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include <new>

#include "provider/soft/objects/use_count.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/memory/region_refusals.hpp"

namespace dapple::soft::verbs {
namespace {

constexpr uint8_t kMaxHint = 3;  // two bits (PCIe 6.2)

// 0, or an error: as in the kernel, the handle may name a CPU only if the thread may run there.
int check_cpu(uint32_t cpu) {
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  if (cpus > 0 && cpu >= static_cast<unsigned long>(cpus))
    return refuse(EINVAL, "cpu_id is %u, and the machine has %ld CPUs.\nUse a lower number.", cpu, cpus);
  cpu_set_t allowed;
  // More CPUs than the set has bits: the kernel's list cannot be read, and the CPU counts as allowed.
  if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_ISSET(cpu, &allowed)) return 0;
  return refuse(EPERM, "cpu_id is %u, and the thread may not run there.\nUse a CPU of sched_getaffinity().", cpu);
}

int check_handle(const provider::DmaHandleInitAttr& attr) {
  constexpr uint32_t kKnown = provider::kDmaHandleCpu | provider::kDmaHandleHint | provider::kDmaHandleMemoryType;
  constexpr uint32_t kTag = provider::kDmaHandleCpu | provider::kDmaHandleMemoryType;
  if (const uint32_t unknown = attr.comp_mask & ~kKnown; unknown != 0)
    return refuse(EOPNOTSUPP, "comp_mask has 0x%x, which the device does not know.\nLeave these bits out.", unknown);
  if ((attr.comp_mask & provider::kDmaHandleHint) == 0)
    return refuse(EINVAL, "comp_mask lacks IBV_DMAH_INIT_ATTR_MASK_PH.\nSet ph, and this bit.");
  if ((attr.comp_mask & kTag) != 0 && (attr.comp_mask & kTag) != kTag) {
    return refuse(EINVAL,
                  "comp_mask has one of the bits of cpu_id and tph_mem_type.\n"
                  "Set IBV_DMAH_INIT_ATTR_MASK_CPU_ID and IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE, or none of them.");
  }
  if ((attr.comp_mask & provider::kDmaHandleCpu) != 0) {
    if (const int error = check_cpu(attr.cpu_id); error != 0) return error;
  }
  if ((attr.comp_mask & provider::kDmaHandleMemoryType) != 0 && attr.tph_mem_type > provider::kTphPersistent) {
    return refuse(EOPNOTSUPP, "tph_mem_type is %u.\nUse IBV_TPH_MEM_TYPE_VM or IBV_TPH_MEM_TYPE_PM.",
                  unsigned{attr.tph_mem_type});
  }
  if (attr.ph > kMaxHint) return refuse(EINVAL, "ph is %u.\nUse a hint of at most %u.", unsigned{attr.ph}, kMaxHint);
  return 0;
}

}  // namespace

provider::DmaHandle* alloc_dmah(ibv_context* ibv, provider::DmaHandleInitAttr* attr) {
  if (!usable(ibv)) return failed(refuse_child());
  if ((context_of(ibv)->attributes().features & kFeatureDmaHandles) == 0) {
    return failed(refuse(EOPNOTSUPP,
                         "the device's identity (--as) has no DMA handles.\n"
                         "Register memory without a DMA handle."));
  }
  if (const int error = check_handle(*attr); error != 0) return failed(error);
  auto* handle = new (std::nothrow) DmaHandle;
  if (handle == nullptr) return failed(refuse_memory("DMA handles"));
  handle->ibv.context = ibv;
  context_of(ibv)->live_objects.fetch_add(1);
  return &handle->ibv;
}

int dealloc_dmah(provider::DmaHandle* ibv) {
  if (!usable(ibv->context)) return refuse_child();
  auto* handle = ours<DmaHandle>(ibv);
  if (const uint32_t users = handle->users.load(); users != 0)
    return refuse(EBUSY, "%u memory regions use the DMA handle.\nDeregister them first.", users);
  leave(context_of(ibv->context)->live_objects);
  delete handle;
  return 0;
}

}  // namespace dapple::soft::verbs
