// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/persistence.hpp"

#include <errno.h>

#include "provider/attr_fields.hpp"

namespace dapple::provider {
namespace {

// Whether what is in them survives a loss of power: yes if all regions of persistent memory say so, no if one says
// otherwise, unknown if there is none or one says nothing.
dappledv_answer caches_are_persistent(const Path& root) {
  const coherence::PersistentRegions regions = coherence::read_persistent_regions(root.c_str());
  if (regions.memory_controller > 0) return DAPPLEDV_ANSWER_NO;
  return regions.cpu_caches > 0 && regions.unspecified == 0 ? DAPPLEDV_ANSWER_YES : DAPPLEDV_ANSWER_UNKNOWN;
}

}  // namespace

void fill_persistence(const coherence::CpuDescription& cpu, const Path& root, dappledv_device_attr& attr) {
  const auto persistence = coherence::decide_persistence(cpu, coherence::read_persistence_domain(root.c_str()));
  attr.caches_persistent = static_cast<uint8_t>(caches_are_persistent(root));
  attr.persist_instruction = persistence.instruction;
  attr.persist_supported = persistence.possible;
  attr.sync_persists = 0;
  attr.refusal = cpu.refusal;
}

int persist_region(const coherence::Persistence& persistence, const dappledv_device_attr* device,
                   dappledv_device_attr* region) noexcept {
  if (device == nullptr || region == nullptr) return EINVAL;
  if ((device->comp_mask & DAPPLEDV_DEVICE_ATTR_PERSISTENCE) == 0) return EINVAL;
  if (!persistence.possible) return EOPNOTSUPP;
  copy_fields(*device, device->comp_mask, region);
  region->sync_persists = 1;
  return 0;
}

void persist_ranges(const coherence::BackEnd& back_end, const coherence::Persistence& persistence, const iovec* ranges,
                    size_t num_ranges) noexcept {
  back_end.order_before_maintenance();
  for (size_t i = 0; i < num_ranges; ++i) {
    coherence::persist(back_end, persistence, ranges[i].iov_base, ranges[i].iov_len);
  }
  back_end.complete_persistence();
}

}  // namespace dapple::provider
