// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// ibv_advise_mr(): memory of on-demand regions that the program will use soon.
#include <errno.h>

#include "provider/common/segment_at.hpp"
#include "provider/soft/memory/mapped_range.hpp"
#include "provider/soft/objects/verbs.hpp"
#include "provider/soft/progress/revival.hpp"
#include "provider/soft/refusals/refusal.hpp"
#include "provider/soft/transport/context.hpp"
#include "provider/soft/verbs/memory/region_refusals.hpp"

namespace dapple::soft::verbs {
namespace {

// A newer name of libibverbs.
constexpr int kPrefetchNoFault = 2;

int refuse_segment(const ibv_sge& segment, const RegionConfig& config) {
  return refuse(EFAULT,
                "the segment of %u bytes at 0x%llx is not within its region (%llu bytes at 0x%llx).\n"
                "Compare addr and length with those of the registration.",
                segment.length, static_cast<unsigned long long>(segment.addr),
                static_cast<unsigned long long>(config.length), static_cast<unsigned long long>(config.iova));
}

// The pages of a segment come in, unless `brings_in` is false. 0, or the errno of mlx5.
int prefetch(MemoryTable& memory, const Pd& pd, const ibv_sge& segment, bool write, bool brings_in) {
  RegionConfig config;
  if (memory.region_config(segment.lkey, config) != 0) {
    return refuse(ENOENT, "no region of the device has the lkey 0x%x.\nPass the lkey of a registered region.",
                  segment.lkey);
  }
  if (config.domain != pd.number) {
    return refuse(EPERM,
                  "the region with the lkey 0x%x has another protection domain.\n"
                  "Pass the protection domain that the region was registered in.",
                  segment.lkey);
  }
  if (config.kind != RegionKind::kOnDemand) {
    return refuse(EINVAL,
                  "the region with the lkey 0x%x has no on-demand paging.\n"
                  "Register it with IBV_ACCESS_ON_DEMAND, or do without the advice: its pages are there.",
                  segment.lkey);
  }
  if (write && (config.access & roce::kLocalWrite) == 0) {
    return refuse(EPERM,
                  "the region with the lkey 0x%x lacks IBV_ACCESS_LOCAL_WRITE.\n"
                  "Use IBV_ADVISE_MR_ADVICE_PREFETCH for memory that the device only reads.",
                  segment.lkey);
  }
  if (!within(segment.addr, segment.length, config.iova, config.length)) return refuse_segment(segment, config);
  if (!brings_in) return 0;
  const uintptr_t at = reinterpret_cast<uintptr_t>(config.memory) + (segment.addr - config.iova);
  const auto* memory_there = reinterpret_cast<const void*>(at);
  if (populate_range(memory_there, segment.length, write) != 0)
    return refuse_range(memory_there, segment.length, write, EFAULT);
  memory.note_prefetch(segment.lkey, segment.addr, segment.length);
  return 0;
}

}  // namespace

// Without IBV_ADVISE_MR_FLAG_FLUSH the kernel answers before it knows of a missing page, so this one is no error then.
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, uint32_t flags, ibv_sge* list, uint32_t count) {
  if (!usable(pd->context)) return refuse_child();
  const DeviceAttributes& attributes = context_of(pd->context)->attributes();
  if ((attributes.features & kFeatureOnDemand) == 0) {
    return refuse(EOPNOTSUPP,
                  "the device's identity (--as) has no on-demand paging.\n"
                  "Look at odp_caps of ibv_query_device_ex() first.");
  }
  const bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  const bool no_fault = static_cast<int>(advice) == kPrefetchNoFault;
  if (!write && !no_fault && advice != IBV_ADVISE_MR_ADVICE_PREFETCH) {
    return refuse(EOPNOTSUPP, "the advice %d is unknown.\nUse a constant of enum ib_uverbs_advise_mr_advice.",
                  static_cast<int>(advice));
  }
  if (count == 0) return refuse(EINVAL, "num_sge is 0.\nPass at least one segment.");
  if (const uint32_t unknown = flags & ~uint32_t{IBV_ADVISE_MR_FLAG_FLUSH}; unknown != 0)
    return refuse(EINVAL, "flags has 0x%x.\nUse IBV_ADVISE_MR_FLAG_FLUSH at most.", unknown);
  for (uint32_t i = 0; i < count; ++i) {
    const ibv_sge segment = provider::segment_at(list, static_cast<int>(i));
    const int error = prefetch(context_of(pd->context)->memory, *ours<Pd>(pd), segment, write, !no_fault);
    if (error != 0 && (error != EFAULT || (flags & IBV_ADVISE_MR_FLAG_FLUSH) != 0)) return error;
  }
  return 0;
}

}  // namespace dapple::soft::verbs
