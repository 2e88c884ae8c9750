// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/emulator.hpp"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "provider/decision.hpp"
#include "provider/overlay/fork_lock.hpp"

namespace dapple::provider {
namespace {

// A program with thousands of regions is told of the first findings.
constexpr unsigned kMaxLinesSaid = 20;

constexpr const char* kOnDemandPaging = "on-demand paging";

int refuse(const char* what) {
  static std::atomic<const char*> last_said = nullptr;
  if (last_said.exchange(what, std::memory_order_relaxed) != what) {
    fprintf(stderr, "dapple: emulator: it cannot do %s\n", what);
  }
  return EOPNOTSUPP;
}

void* pointer_to(uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

constexpr int kWritingAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

// The kernel looks at the shadow, which can be written to, and not at the program's memory. Linux before 5.14 cannot be
// asked.
bool may_be_writable(uintptr_t address, size_t length) {
  const uintptr_t begin = address & ~(Shadow::kPage - 1);
  if (madvise(pointer_to(begin), address + length - begin, MADV_POPULATE_WRITE) == 0) return true;
  return errno == EINVAL && madvise(pointer_to(begin), 0, MADV_POPULATE_WRITE) != 0;
}

__attribute__((destructor)) void report_at_exit() {
  if (Emulator* emulator = Emulator::running()) emulator->report_all();
}

}  // namespace

std::atomic<Emulator*> Emulator::running_ = nullptr;

Emulator* Emulator::start() {
  if (!prepare_for_forks()) return nullptr;
  const WriteLock lock;
  Emulator* emulator = running();
  if (emulator != nullptr && emulator->owner_ == getpid()) return emulator;
  // The first, or the first of a child; its parent's goes on serving the contexts that it has from there, by doing
  // nothing.
  emulator = new (std::nothrow) Emulator;
  if (emulator == nullptr) return nullptr;
  if (!emulator->shadow_.open()) {
    delete emulator;
    return nullptr;
  }
  emulator->owner_ = getpid();
  const char* how = secure_getenv("DAPPLE_EMULATE");
  if (how != nullptr && strstr(how, "watch") != nullptr && !emulator->shadow_.start_watch()) {
    fprintf(stderr, "dapple: emulator: there is no watch over reads on this CPU\n");
  }
  const char* verbose = secure_getenv("DAPPLE_VERBOSE");
  emulator->verbose_ = verbose != nullptr && verbose[0] == '1';
  running_.store(emulator, std::memory_order_release);
  return emulator;
}

void Emulator::fill_attr(dappledv_device_attr& attr) {
  attr.coherence = DAPPLEDV_COHERENCE_NONCOHERENT_CPU;
  attr.reason = DAPPLEDV_REASON_EMULATOR;
  attr.certainty = certainty_of(attr.reason);
  attr.line_size = Shadow::kLine;
  attr.writeback_granule = Shadow::kLine;
  attr.sync_for_device_required = 1;
  attr.sync_for_cpu_required = 1;
  attr.sync_complete = 1;
  attr.sync_supported = 1;
  attr.explanation = "emulator: the device works on shadows of the program's memory";
}

void Emulator::sync_for_device(const iovec* ranges, size_t num_ranges) {
  for (size_t i = 0; i < num_ranges; ++i) {
    shadow_.clean(reinterpret_cast<uintptr_t>(ranges[i].iov_base), ranges[i].iov_len);
  }
}

void Emulator::sync_for_cpu(const iovec* ranges, size_t num_ranges) {
  for (size_t i = 0; i < num_ranges; ++i) {
    shadow_.clean_invalidate(reinterpret_cast<uintptr_t>(ranges[i].iov_base), ranges[i].iov_len);
  }
}

int Emulator::before_registration(RegionRequest& request, void** state) {
  if ((request.access & IBV_ACCESS_ON_DEMAND) != 0) return refuse(kOnDemandPaging);
  const auto address = reinterpret_cast<uintptr_t>(request.address);
  if (request.length == 0) return 0;
  if (address + request.length + Shadow::kPage < address) return EFAULT;
  if (request.length / Shadow::kPage > UINT32_MAX) return EINVAL;  // as the kernel counts
  if (request.length > Shadow::kMaxPages * Shadow::kPage) return ENOMEM;
  const bool is_written = (request.access & kWritingAccess) != 0;
  shadow_.open_pages_of(address, request.length);
  if (is_written && !may_be_writable(address, request.length)) return EFAULT;
  auto* region = new (std::nothrow) ShadowRegion{address, request.length};
  if (region == nullptr) return ENOMEM;
  if (const int error = shadow_.add(region)) {
    delete region;
    return error;
  }
  if (is_written) shadow_.watch(region);
  request.address = region->view + address % Shadow::kPage;
  *state = region;
  return 0;
}

void Emulator::registration_failed(void* state) {
  if (state == nullptr) return;
  auto* region = static_cast<ShadowRegion*>(state);
  shadow_.remove(region);
  delete region;
}

int Emulator::before_reregistration(int flags, int access, void* state) {
  // It cannot carry an IOVA other than the address.
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) return refuse("a change of a region's address (ibv_rereg_mr)");
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) == 0) return 0;
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return refuse(kOnDemandPaging);
  if (state == nullptr || (access & kWritingAccess) == 0) return 0;
  auto* region = static_cast<ShadowRegion*>(state);
  shadow_.open_pages_of(region->address, region->length);
  if (!may_be_writable(region->address, region->length)) return EFAULT;
  shadow_.watch(region);
  return 0;
}

void Emulator::deregistered(void* state) {
  if (state == nullptr) return;
  report(*static_cast<ShadowRegion*>(state));
  registration_failed(state);
}

bool Emulator::may_say_more() {
  const unsigned said = lines_said_.fetch_add(1, std::memory_order_relaxed);
  if (said == kMaxLinesSaid) fprintf(stderr, "dapple: emulator: there is more to say of regions\n");
  return said < kMaxLinesSaid;
}

void Emulator::report(const ShadowRegion& of) {
  if (getpid() != owner_) return;
  uintptr_t first = 0;
  const uint64_t unsynced = shadow_.unsynced_lines(of, &first);
  const ShadowRegion region = shadow_.look_at(of);
  const auto offset = [&region](uintptr_t address) { return static_cast<size_t>(address - region.address); };
  if (unsynced > 0 && may_say_more()) {
    fprintf(stderr,
            "dapple: emulator: region %p of %zu bytes: %" PRIu64
            " lines that the device changed were never synced, the first at offset %zu\n",
            pointer_to(region.address), region.length, unsynced, offset(first));
  }
  if (region.lost_bytes > 0 && may_say_more()) {
    fprintf(stderr,
            "dapple: emulator: region %p of %zu bytes: %" PRIu64
            " bytes from the device were lost to the write-back of lines that the CPU had changed, the first at "
            "offset %zu\n",
            pointer_to(region.address), region.length, region.lost_bytes, offset(region.first_lost));
  }
  if (verbose_ && region.needless_lines > 0 && may_say_more()) {
    fprintf(stderr,
            "dapple: emulator: region %p of %zu bytes: syncs found %" PRIu64
            " lines with nothing to move, the first at offset %zu\n",
            pointer_to(region.address), region.length, region.needless_lines, offset(region.first_needless));
  }
}

void Emulator::report_all() {
  if (getpid() != owner_) return;
  for (const ShadowRegion* region = shadow_.regions(); region != nullptr; region = region->next) report(*region);
  const ShadowReport totals = shadow_.report();
  fprintf(stderr, "dapple: emulator: syncs moved %" PRIu64 " lines and found %" PRIu64 " with nothing to move\n",
          totals.moved_lines, totals.needless_syncs);
  if (totals.lost_bytes == 0) return;
  fprintf(stderr,
          "dapple: emulator: in all %" PRIu64
          " bytes from the device were lost to the write-back of lines that the CPU had changed, the first at %p\n",
          totals.lost_bytes, pointer_to(totals.first_lost));
}

}  // namespace dapple::provider
