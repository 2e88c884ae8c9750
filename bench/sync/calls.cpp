// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// bench-sync-calls: the cost of dat_lmr_sync_rdma_read and _write on a coherent device, where they only look up the
// segments, check them and order accesses. It measures the core's own path, with registrations that no device has made.
// The registry and the check of the handle are also part of an empty call, so they cancel out.
//
// Fails if one segment costs more than 25 ns above an empty call, or a further one more than 10 ns.
#include <dat2/udat.h>
#include <stdio.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "bench/sync/measure.hpp"
#include "tests/unit/udapl-core/fixture.hpp"
#include "udapl/core/memory/lmr.hpp"
#include "udapl/core/memory/pz.hpp"
#include "udapl/core/memory/sync.hpp"

namespace {

using namespace dapple::udapl;

constexpr double kOneSegmentNs = 25;
constexpr double kFurtherSegmentNs = 10;
constexpr size_t kSegments = 16;
constexpr uint32_t kRegions = 1000;
constexpr uint64_t kRegionBytes = 1 << 20;
constexpr uint64_t kFirstAddress = uint64_t{1} << 40;

// The part of an IA that sync_segments uses, for a coherent device.
class CoherentIa {
 public:
  CoherentIa() {
    coherence_.coherence = DAPPLEDV_COHERENCE_COHERENT;
    coherence_.sync_supported = 1;
  }
  LmrTable& lmrs() { return lmrs_; }
  bool maintains_caches() const { return false; }
  // No memory here is marked.
  const dappledv_region_attr& memory_coherence(bool = false, bool = false) const { return coherence_; }

 private:
  LmrTable lmrs_;
  dappledv_region_attr coherence_{};
};

// Registrations with keys like a device's: an index and a changing byte. They stay until the end of the program.
uint32_t key_of(uint32_t region) {
  return region << 8 | (region * 37 & 0xff);
}

void add_regions(CoherentIa& ia) {
  static auto& owner = *new no_device::OpenIa;
  static Pz& pz = *arena<Pz>().create(owner.get(), dapple::verbs::Pd{});
  for (uint32_t i = 0; i < kRegions; ++i) {
    auto* mr = new ibv_mr{};
    mr->lkey = mr->rkey = key_of(i);
    LmrAttr request;
    request.address = reinterpret_cast<void*>(kFirstAddress + i * kRegionBytes);
    request.length = kRegionBytes;
    request.privileges = kAllPrivileges;
    ia.lmrs().add(*arena<Lmr>().create(owner.get(), pz, dapple::verbs::Mr(mr), request, SharedCookieHold(), false));
  }
}

using Segments = std::vector<DAT_LMR_TRIPLET>;

Segments segments_of(bool one_region) {
  Segments segments;
  for (uint32_t i = 0; i < kSegments; ++i) {
    const uint32_t region = one_region ? 7 : i * 61 % kRegions;
    DAT_LMR_TRIPLET segment{};
    segment.lmr_context = key_of(region);
    segment.virtual_address = kFirstAddress + region * kRegionBytes + i * 64;
    segment.segment_length = 4096;
    segments.push_back(segment);
  }
  return segments;
}

// The best of many rounds of many calls, in ns for each call.
[[gnu::noinline]] double call_ns(CoherentIa& ia, const Segments& segments, size_t count, SyncFunction sync) {
  constexpr int kCalls = 20000;
  constexpr int kRounds = 60;
  double best = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t begin = dapple::bench::thread_ns();
    for (int i = 0; i < kCalls; ++i) {
      const DAT_LMR_TRIPLET* list = segments.data();
      // Hides the list and its length from the compiler.
      asm volatile("" : "+r"(list), "+r"(count) : : "memory");
      if (!sync_segments(ia, list, count, sync)) return -1;
    }
    best = std::min(best, static_cast<double>(dapple::bench::thread_ns() - begin) / kCalls);
  }
  return best;
}

bool row(CoherentIa& ia, const char* call, SyncFunction sync, bool one_region) {
  const Segments segments = segments_of(one_region);
  const double empty_ns = call_ns(ia, segments, 0, sync);
  const double one_ns = call_ns(ia, segments, 1, sync) - empty_ns;
  const double further_ns = (call_ns(ia, segments, kSegments, sync) - empty_ns - one_ns) / (kSegments - 1);
  const bool fast_enough = empty_ns >= 0 && one_ns >= 0 && one_ns <= kOneSegmentNs && further_ns <= kFurtherSegmentNs;
  printf("| %-15s | %-9s | %5.1f | %6.1f | %6.1f |%s\n", call, one_region ? "one" : "many", empty_ns, one_ns,
         further_ns, fast_enough ? "" : " too slow");
  return fast_enough;
}

}  // namespace

int main() {
  printf("ns, of %u registrations; at most %.0f for the first segment and %.0f for a further one\n\n", kRegions,
         kOneSegmentNs, kFurtherSegmentNs);
  printf("| call            | regions   | empty | +first | +each  |\n|---|---|---|---|---|\n");
  bool fast_enough = true;
  const auto ia = std::make_unique<CoherentIa>();
  add_regions(*ia);
  for (const bool one_region : {true, false}) {
    fast_enough &= row(*ia, "sync_rdma_read", dappledv_sync_for_device, one_region);
    fast_enough &= row(*ia, "sync_rdma_write", dappledv_sync_for_cpu, one_region);
  }
  return fast_enough ? 0 : 1;
}
