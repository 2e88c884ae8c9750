// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/device/machine/persistence.hpp"

namespace dapple::provider {
namespace {

// Tells whether data in the caches survives a loss of power: yes if all regions of persistent memory report it, no if
// one reports otherwise, unknown without such regions or if one reports nothing.
dappledv_answer caches_are_persistent(const Path& root) {
  const coherence::PersistentRegions regions = coherence::read_persistent_regions(root.c_str());
  if (regions.memory_controller > 0) return DAPPLEDV_ANSWER_NO;
  return regions.cpu_caches > 0 && regions.unspecified == 0 ? DAPPLEDV_ANSWER_YES : DAPPLEDV_ANSWER_UNKNOWN;
}

}  // namespace

void fill_persistence(const coherence::CpuDescription& cpu, const Path& root, std::optional<dappledv_persistence> said,
                      dappledv_device_attr& attr) {
  coherence::PersistenceDomain domain;
  dappledv_answer caches;
  if (said) {
    const bool in_caches = *said == DAPPLEDV_PERSISTENCE_CPU_CACHES;
    domain = in_caches ? coherence::PersistenceDomain::kCpuCaches : coherence::PersistenceDomain::kMemoryController;
    caches = in_caches ? DAPPLEDV_ANSWER_YES : DAPPLEDV_ANSWER_NO;
  } else {
    domain = coherence::read_persistence_domain(root.c_str());
    caches = caches_are_persistent(root);
  }
  const auto persistence = coherence::decide_persistence(cpu, domain);
  attr.caches_persistent = static_cast<uint8_t>(caches);
  attr.persist_instruction = persistence.instruction;
  attr.persist_supported = persistence.possible;
}

void persist_ranges(const coherence::BackEnd& back_end, dappledv_persistence domain, const iovec* ranges,
                    size_t num_ranges) noexcept {
  back_end.order_before_maintenance();
  if (domain != DAPPLEDV_PERSISTENCE_CPU_CACHES) {
    for (size_t i = 0; i < num_ranges; ++i) back_end.persist(ranges[i].iov_base, ranges[i].iov_len);
  }
  back_end.complete_persistence();
}

}  // namespace dapple::provider
