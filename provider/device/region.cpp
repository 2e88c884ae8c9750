// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/region.hpp"

#include <errno.h>

#include "provider/device/decision.hpp"
#include "provider/device/dmabuf.hpp"
#include "provider/device/refusal.hpp"

namespace dapple::provider {

int refuse_null_region() noexcept {
  return refuse(EINVAL, "region is NULL.\nPass the address of the region that dappledv_init_region() has filled.");
}

int init_region(const dappledv_device_attr* device, dappledv_region_attr* region) noexcept {
  if (device == nullptr)
    return refuse(EINVAL, "device is NULL.\nPass the attributes that dappledv_query_device() has filled.");
  if (region == nullptr) return refuse(EINVAL, "region is NULL.\nPass the address of a struct dappledv_region_attr.");
  *region = {};
  region->coherence = device->coherence;
  region->reason = device->reason;
  region->certainty = device->certainty;
  region->sync_for_device_required = device->sync_for_device_required;
  region->sync_for_cpu_required = device->sync_for_cpu_required;
  region->sync_complete = device->sync_complete;
  region->sync_supported = device->sync_supported;
  region->dmabuf_fd = -1;
  region->explanation = device->explanation;
  return 0;
}

int override_region(const coherence::CpuDescription& cpu, dappledv_region_attr* region,
                    dappledv_coherence coherence) noexcept {
  if (region == nullptr) return refuse_null_region();
  Decision decision = {coherence, DAPPLEDV_REASON_OVERRIDE_REGION, nullptr};
  switch (coherence) {
    case DAPPLEDV_COHERENCE_COHERENT:
      decision.explanation = "override: this memory is coherent";
      break;
    case DAPPLEDV_COHERENCE_NONCOHERENT_CPU:
      decision.explanation = "override: this memory needs maintenance of the CPU's caches";
      break;
    case DAPPLEDV_COHERENCE_NONCOHERENT_IO:
      decision.explanation = "override: this memory is behind a cache that user space cannot reach";
      break;
    default:
      return refuse(EINVAL,
                    "coherence is %d.\nPass DAPPLEDV_COHERENCE_COHERENT, ..._NONCOHERENT_CPU or ..._NONCOHERENT_IO.",
                    static_cast<int>(coherence));
  }
  dappledv_region_attr made = *region;
  fill_coherence(decision, cpu, made);
  if (!made.sync_supported) return EOPNOTSUPP;
  *region = made;
  return 0;
}

int persist_region(const coherence::CpuDescription& cpu, coherence::PersistenceDomain domain,
                   std::optional<dappledv_persistence> said, dappledv_region_attr* region,
                   dappledv_persistence wanted) noexcept {
  if (region == nullptr) return refuse_null_region();
  if (wanted == DAPPLEDV_PERSISTENCE_UNSPECIFIED && said) wanted = *said;
  switch (wanted) {
    case DAPPLEDV_PERSISTENCE_UNSPECIFIED: {
      const coherence::Persistence machine = coherence::decide_persistence(cpu, domain);
      if (!machine.possible) return EOPNOTSUPP;
      wanted = machine.caches_are_persistent ? DAPPLEDV_PERSISTENCE_CPU_CACHES : DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER;
      break;
    }
    case DAPPLEDV_PERSISTENCE_MEMORY_CONTROLLER:
      if (!cpu.can_persist) return EOPNOTSUPP;
      break;
    case DAPPLEDV_PERSISTENCE_CPU_CACHES:
      break;
    default:
      return refuse(EINVAL, "domain is %d.\nPass a value of enum dappledv_persistence.", static_cast<int>(wanted));
  }
  region->persistence = wanted;
  return 0;
}

int dmabuf_region(dappledv_region_attr* region, int fd) noexcept {
  if (region == nullptr) return refuse_null_region();
  if (!is_dmabuf(fd))
    return refuse(EINVAL, "the descriptor %d is not that of a dma-buf.\nPass that of the exporting driver.", fd);
  region->reason = DAPPLEDV_REASON_DMABUF;
  region->certainty = certainty_of(region->reason);
  region->sync_for_device_required = 1;
  region->sync_for_cpu_required = 1;
  region->sync_complete = 1;
  region->sync_supported = 1;
  region->dmabuf = 1;
  region->dmabuf_fd = fd;
  region->explanation = "dma-buf: the kernel and the exporting driver maintain this memory";
  return 0;
}

}  // namespace dapple::provider
