// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <errno.h>

#include <memory>
#include <new>

#include "provider/overlay/attached.hpp"
#include "provider/sync.hpp"

namespace dapple::provider {
namespace {

// Longer lists are kept on the heap.
constexpr size_t kUsual = 64;

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

// Finds the segments' places and the coherence of their device. The lock is held meanwhile, and not during maintenance:
// that may take long, and whoever registers memory or forks waits for the lock.
int find_all(ibv_context* context, const ibv_sge* segments, size_t num_segments, iovec* ranges,
             dappledv_coherence* coherence, size_t* bad_segment) {
  const ReadLock lock;
  const Attached* attached = find_attached(context);
  if (attached == nullptr || !attached->request.attr.sync_supported) return EOPNOTSUPP;
  *coherence = attached->request.attr.coherence;
  Finder finder(attached->regions);
  for (size_t i = 0; i < num_segments; ++i) {
    if (finder.find(segments[i], &ranges[i])) continue;
    if (bad_segment != nullptr) *bad_segment = i;
    return EINVAL;
  }
  return 0;
}

}  // namespace

int sync_regions(const coherence::BackEnd& back_end, SyncDirection direction, ibv_context* context,
                 const ibv_sge* segments, size_t num_segments, size_t* bad_segment) noexcept {
  if (segments == nullptr && num_segments > 0) return EINVAL;
  iovec usual[kUsual];
  std::unique_ptr<iovec[]> many;
  if (num_segments > kUsual) {
    many.reset(new (std::nothrow) iovec[num_segments]);
    if (many == nullptr) return ENOMEM;
  }
  iovec* ranges = many == nullptr ? usual : many.get();
  dappledv_coherence coherence = DAPPLEDV_COHERENCE_UNKNOWN;
  if (const int error = find_all(context, segments, num_segments, ranges, &coherence, bad_segment)) return error;

  const auto sync = direction == SyncDirection::kForDevice ? sync_for_device : sync_for_cpu;
  // On a coherent device it is the ordering alone, for which no range is looked at.
  sync(back_end, coherence, ranges, num_segments);
  return 0;
}

}  // namespace dapple::provider
