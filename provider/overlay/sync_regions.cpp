// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <errno.h>

#include "provider/overlay/attached.hpp"
#include "provider/sync.hpp"

namespace dapple::provider {
namespace {

// How many ranges are handed to the cache's operations at a time; each time costs a wait.
constexpr size_t kBatch = 64;

// Finds segments in the table one after the other; neighbours of one region cost one look-up.
class Finder {
 public:
  explicit Finder(const RegionTable& table) : table_(table) {}

  bool find(const ibv_sge& segment, iovec* range) {
    if (last_ == nullptr || last_->lkey != segment.lkey) last_ = table_.find(segment.lkey);
    return last_ != nullptr && translate(*last_, segment, range);
  }

 private:
  const RegionTable& table_;
  const Region* last_ = nullptr;
};

}  // namespace

int sync_regions(const coherence::BackEnd& back_end, SyncDirection direction, ibv_context* context,
                 const ibv_sge* segments, size_t num_segments) noexcept {
  if (segments == nullptr && num_segments > 0) return EINVAL;
  // Held to the end, so that no region goes between the check and the maintenance.
  const ReadLock lock;
  const Attached* attached = find_attached(context);
  if (attached == nullptr || !attached->request.attr.sync_supported) return EOPNOTSUPP;

  iovec ranges[kBatch];
  Finder check(attached->regions);
  for (size_t i = 0; i < num_segments; ++i) {
    if (!check.find(segments[i], &ranges[0])) return EINVAL;
  }

  const auto sync = direction == SyncDirection::kForDevice ? sync_for_device : sync_for_cpu;
  const dappledv_coherence coherence = attached->request.attr.coherence;
  if (coherence == DAPPLEDV_COHERENCE_COHERENT || num_segments == 0) {
    // The ordering, for which no range is looked at.
    sync(back_end, coherence, nullptr, 0);
    return 0;
  }
  Finder finder(attached->regions);
  for (size_t done = 0; done < num_segments;) {
    size_t count = 0;
    for (; count < kBatch && done < num_segments; ++count, ++done) finder.find(segments[done], &ranges[count]);
    sync(back_end, coherence, ranges, count);
  }
  return 0;
}

}  // namespace dapple::provider
