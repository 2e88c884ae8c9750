// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/emulator.hpp"

#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <new>
#include <optional>

#include "provider/common/host_guards.hpp"
#include "provider/common/settings.hpp"
#include "provider/common/standard_error.hpp"
#include "provider/emulator/ends.hpp"
#include "provider/emulator/shadow/finding.hpp"
#include "provider/emulator/shadow/say.hpp"

namespace dapple::provider {
namespace {

// The limit of findings that are shown without dapple-run --check: a program may have thousands of regions.
constexpr unsigned kMaxLinesSaid = 20;

constexpr int kPatienceMs = 2000;

constexpr const char* kOnDemandPaging = "on-demand paging";

int refuse(const char* what) {
  static std::atomic<const char*> last_said = nullptr;
  if (last_said.exchange(what, std::memory_order_relaxed) != what) say("%s is refused", what);
  return EOPNOTSUPP;
}

void* pointer_to(uintptr_t address) {
  return reinterpret_cast<void*>(address);
}

constexpr int kWritingAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
constexpr int kPeersReadingAccess = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

const char* name_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return "an RDMA Write";
    default:
      return "a Send";
  }
}

void say_totals(const ShadowTotals& totals) {
  say("syncs moved %" PRIu64 " lines and found nothing to move in %" PRIu64 " lines", totals.moved_lines,
      totals.needless_lines);
  if (totals.lost_bytes.count == 0) return;
  say("in all %" PRIu64
      " bytes from the device were lost to the write-back of lines that the CPU had changed, the first at %p",
      totals.lost_bytes.count, pointer_to(totals.lost_bytes.first));
}

}  // namespace

std::atomic<Emulator*> Emulator::running_ = nullptr;

Emulator* Emulator::start(ShowFinding show, const char** why) {
  Emulator* emulator = running();
  if (emulator != nullptr && emulator->owner_ == getpid()) return emulator;
  // This is the first emulator of the process. In a child of fork() the contexts that it inherited keep the parent's
  // emulator, which does nothing there.
  emulator = new (std::nothrow) Emulator;
  *why = emulator == nullptr || !begin_findings(show)
             ? "no memory is available for the emulator"
             : emulator->shadow_.open(report, static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  if (*why != nullptr) {
    delete emulator;
    return nullptr;
  }
  emulator->owner_ = getpid();
  // This comes before the watch adds its handlers, because it leaves signals alone that have a handler.
  report_before_the_end();
  const char* how = settings().emulate;
  if (how != nullptr && strstr(how, "watch") != nullptr && !emulator->shadow_.start_watch()) {
    say("reads cannot be watched on this CPU");
  }
  emulator->verbose_ = is_on(settings().verbose);
  running_.store(emulator, std::memory_order_release);
  note_for_launcher("begin", 0);
  return emulator;
}

void Emulator::watch(ShadowRegion* region) {
  static std::atomic<bool> said = false;
  if (shadow_.watch(region) || said.exchange(true)) return;
  say("region %p of %zu bytes is not watched, and neither are other regions with pages of more than %zu bytes",
      pointer_to(region->address), region->length, Shadow::kPage);
}

int Emulator::before_registration(RegionRequest& request, void** state) {
  const CancelGuard whole;
  if ((request.access & IBV_ACCESS_ON_DEMAND) != 0) return refuse(kOnDemandPaging);
  const auto address = reinterpret_cast<uintptr_t>(request.address);
  if (request.length == 0) return 0;
  if (address + request.length + ShadowPages::kChunk < address) return EFAULT;
  if (request.length / Shadow::kPage > UINT32_MAX) return EINVAL;  // the kernel counts the pages of a region in 32 bits
  const bool is_written = (request.access & kWritingAccess) != 0;
  if (is_written && !shadow_.is_writable(address, request.length)) return EFAULT;
  ShadowRegion* region = nullptr;
  const bool peers_read = (request.access & kPeersReadingAccess) != 0;
  const int error = shadow_.add(address, request.length, peers_read, &region);
  if (error == EBUSY) return refuse("shared memory that another process has registered");
  if (error != 0) return error;
  if (is_written) watch(region);
  request.address = region->view;
  *state = region;
  return 0;
}

void Emulator::registered(void* state) {
  const CancelGuard whole;
  if (state != nullptr) shadow_.registered(static_cast<ShadowRegion*>(state));
  show_findings(note_end);
}

void Emulator::registration_failed(void* state) {
  const CancelGuard whole;
  if (state != nullptr) shadow_.remove(static_cast<ShadowRegion*>(state));
  show_findings(note_end);
}

int Emulator::before_reregistration(int flags, int access, void* state) {
  const CancelGuard whole;
  // ibv_rereg_mr() cannot pass an IOVA other than the address.
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) return refuse("a change of a region's address (ibv_rereg_mr)");
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) == 0) return 0;
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return refuse(kOnDemandPaging);
  if (state == nullptr) return 0;
  const auto* region = static_cast<const ShadowRegion*>(state);
  const bool is_written = (access & kWritingAccess) != 0;
  return is_written && !shadow_.is_writable(region->address, region->length) ? EFAULT : 0;
}

void Emulator::access_changed(int access, void* state) {
  const CancelGuard whole;
  if (state == nullptr) return;
  auto* region = static_cast<ShadowRegion*>(state);
  if ((access & kWritingAccess) != 0) watch(region);
  shadow_.set_peers_read(region, (access & kPeersReadingAccess) != 0);
}

void Emulator::deregistered(void* state) {
  registration_failed(state);
}

// The result of a call of the provider, with the errno that it has left.
template <typename Call>
int Emulator::with_errno_of(Call call) {
  int result = 0;
  int providers_errno = 0;
  {
    const CancelGuard whole;
    result = call();
    providers_errno = errno;
    show_findings(note_end);
  }
  errno = providers_errno;
  return result;
}

int Emulator::post_send(ibv_qp* qp, ibv_send_wr* requests, ibv_send_wr** bad, const TransferMeans& means) {
  return with_errno_of([&] { return transfers_.post_send(qp, requests, bad, means); });
}

int Emulator::poll(ibv_cq* cq, int count, ibv_wc* completions, int (*poll_cq)(ibv_cq*, int, ibv_wc*)) {
  return with_errno_of([&] { return transfers_.poll(cq, count, completions, poll_cq); });
}

void Emulator::emptied(const ibv_qp* qp) {
  const CancelGuard whole;
  transfers_.emptied(qp);
}

// Tells dapple-run the number of findings. Called when the process ends, or when the check is about to end it.
void Emulator::note_end() {
  if (const Emulator* emulator = running()) {
    const unsigned findings = emulator->findings_.load(std::memory_order_relaxed);
    // The check looks after its own reports.
    const bool kept = findings != 0 && !is_checked() && !has_standard_error_of_dapple_run();
    note_for_launcher(kept ? "kept" : "end", findings);
  }
}

bool Emulator::may_say_more() {
  const unsigned said = findings_.fetch_add(1, std::memory_order_relaxed);
  if (is_checked()) return true;
  if (said == kMaxLinesSaid) say("further findings are not shown");
  return said < kMaxLinesSaid;
}

void Emulator::report(const ShadowFindings& found) {
  Emulator* emulator = running();
  if (emulator == nullptr || getpid() != emulator->owner_) return;
  const auto tell = [&found, emulator](const Tally& tally, const char* what, const FindingKind& kind) {
    if (tally.count == 0 || !emulator->may_say_more()) return;
    provider::report(kind, {{"registered", found.registered}},
                     "region %p of %zu bytes: %" PRIu64 " %s, the first at offset %zu", pointer_to(found.address),
                     found.length, tally.count, what, static_cast<size_t>(tally.first - found.address));
  };
  tell(found.unsynced, "lines that the device changed were never synced", kUnsyncedForCpu);
  tell(found.unclean, "lines that the CPU changed were never synced for the peers that may read them",
       kUnsyncedForDevice);
  tell(found.lost_bytes, "bytes from the device were lost to the write-back of lines that the CPU had changed",
       kLostBytes);
  if (!emulator->verbose_ || found.needless.count == 0) return;
  say("region %p of %zu bytes: syncs found nothing to move in %" PRIu64 " lines, the first at offset %zu",
      pointer_to(found.address), found.length, found.needless.count,
      static_cast<size_t>(found.needless.first - found.address));
}

void Emulator::report_transfer(const TransferFinding& found) {
  Emulator* emulator = running();
  if (emulator == nullptr || !emulator->may_say_more()) return;
  const bool at_post = found.when == TransferFinding::When::kAtPost;
  provider::report(at_post ? kUnsyncedForDevice : kChangedTooEarly,
                   {{"posted", found.posted}, {"polled", at_post ? Stack() : stack_here()}},
                   "%s of %zu bytes at %p (wr_id %#" PRIx64 ", queue pair %#" PRIx32 "): %" PRIu64
                   " bytes %s, the first at offset %zu",
                   name_of(found.opcode), found.length, pointer_to(found.address), found.wr_id, found.qp_num,
                   found.changed.count,
                   at_post ? "were changed by the CPU and not cleaned by a sync before the post"
                           : "were changed before the completion was polled",
                   static_cast<size_t>(found.changed.first - found.address));
}

void Emulator::report_all(End end) {
  if (getpid() != owner_ || reported_.exchange(true)) return;
  // A handler may have interrupted this thread in malloc(), and the thread with the lock may wait for malloc()'s own.
  const bool is_handler = end == End::kSignal || in_signal_handler();
  const std::optional<ShadowTotals> totals = is_handler ? shadow_.tell_all(kPatienceMs) : shadow_.tell_all();
  is_handler ? write_findings() : show_findings_at_exit();
  if (totals) {
    say_totals(*totals);
  } else {
    say("the regions are not reported, because another thread kept the emulator busy when the process was to end");
  }
  note_end();
}

}  // namespace dapple::provider
