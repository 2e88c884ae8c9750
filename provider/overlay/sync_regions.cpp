// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <errno.h>

#include <memory>
#include <new>

#include "provider/device/dmabuf.hpp"
#include "provider/device/refusal.hpp"
#include "provider/device/sync.hpp"
#include "provider/overlay/attached.hpp"

namespace dapple::provider {
namespace {

// The number of segments whose arrays are kept on the stack; a longer list takes heap memory.
constexpr size_t kUsual = 64;

// Finds segments in the table one after the other; neighbours of one region cost one look-up.
class Finder {
 public:
  explicit Finder(const RegionTable& table) : table_(table) {}

  // *dmabuf_fd: the dma-buf of the segment's region, or -1.
  bool find(const ibv_sge& segment, iovec* range, int* dmabuf_fd) {
    if (last_ == nullptr || last_->lkey != segment.lkey) last_ = table_.find(segment.lkey);
    if (last_ == nullptr || !translate(*last_, segment, range)) return false;
    *dmabuf_fd = last_->dmabuf_fd;
    return true;
  }

 private:
  const RegionTable& table_;
  const Region* last_ = nullptr;
};

// Two arrays with an entry for each segment.
struct Arrays {
  iovec* ranges;
  int* dmabuf_fds;
};

// Finds the segments' ranges and the coherence of their device. It holds the lock meanwhile. The lock is not held
// during maintenance, which may take long, because registration and fork wait for the lock.
int find_all(ibv_context* context, const ibv_sge* segments, size_t num_segments, const Arrays& arrays,
             dappledv_coherence* coherence, size_t* bad_segment) {
  const ReadLock lock;
  const Attached* attached = find_attached(context);
  if (attached == nullptr || !attached->request.attr.sync_supported) return EOPNOTSUPP;
  *coherence = attached->request.attr.coherence;
  Finder finder(attached->regions);
  for (size_t i = 0; i < num_segments; ++i) {
    if (finder.find(segments[i], &arrays.ranges[i], &arrays.dmabuf_fds[i])) continue;
    if (bad_segment != nullptr) *bad_segment = i;
    return refuse(EINVAL,
                  "the segment %zu (%u bytes at 0x%llx, lkey 0x%x) is not in a region of the context with this lkey.\n"
                  "Pass segments of memory that was registered after dappledv_attach().",
                  i, segments[i].length, static_cast<unsigned long long>(segments[i].addr), segments[i].lkey);
  }
  return 0;
}

// Syncs each dma-buf, also after a failure. Returns 0 or the first error.
int sync_dmabufs(const coherence::BackEnd& back_end, SyncDirection direction, const int* fds, size_t num_fds) {
  int last = -1;
  int error = 0;
  for (size_t i = 0; i < num_fds; ++i) {
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): refuse() does not return 0, so all are found
    if (fds[i] < 0 || fds[i] == last) continue;
    last = fds[i];
    back_end.full_barrier();
    const int its_error = sync_dmabuf(last, direction);
    if (error == 0) error = its_error;
  }
  return error;
}

}  // namespace

int sync_regions(const coherence::BackEnd& back_end, SyncDirection direction, ibv_context* context,
                 const ibv_sge* segments, size_t num_segments, size_t* bad_segment) noexcept {
  if (segments == nullptr && num_segments > 0)
    return refuse(EINVAL, "segments is NULL, and num_segments is %zu.\nPass the address of the first segment.",
                  num_segments);
  iovec usual_ranges[kUsual];
  int usual_fds[kUsual];
  Arrays arrays = {usual_ranges, usual_fds};
  std::unique_ptr<iovec[]> ranges;
  std::unique_ptr<int[]> fds;
  if (num_segments > kUsual) {
    ranges.reset(new (std::nothrow) iovec[num_segments]);
    fds.reset(new (std::nothrow) int[num_segments]);
    if (ranges == nullptr || fds == nullptr) return ENOMEM;
    arrays = {ranges.get(), fds.get()};
  }
  dappledv_coherence coherence = DAPPLEDV_COHERENCE_UNKNOWN;
  if (const int error = find_all(context, segments, num_segments, arrays, &coherence, bad_segment)) return error;

  const auto sync = direction == SyncDirection::kForDevice ? sync_for_device : sync_for_cpu;
  // On a coherent device this is only the ordering, which needs no range.
  sync(back_end, coherence, arrays.ranges, num_segments);
  return sync_dmabufs(back_end, direction, arrays.dmabuf_fds, num_segments);
}

}  // namespace dapple::provider
