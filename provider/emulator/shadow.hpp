// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory that a device works on in place of the program's, as if the CPU's caches lay in between: the program's memory
// is what the CPU sees through its caches, the shadow is memory itself. Only syncs move lines from one to the other,
// whole, and with the hazards of hardware.
#ifndef DAPPLE_PROVIDER_EMULATOR_SHADOW_HPP
#define DAPPLE_PROVIDER_EMULATOR_SHADOW_HPP

#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "provider/emulator/quiet_lock.hpp"
#include "provider/emulator/shadow_pages.hpp"

namespace dapple::provider {

// Some lines, or some bytes: how many, and the address of the first.
struct Tally {
  uint64_t count = 0;
  uintptr_t first = 0;

  void add(uint64_t more, uintptr_t at) {
    if (more == 0) return;
    if (count == 0 || at < first) first = at;
    count += more;
  }
};

// The findings of the syncs so far, of all regions.
struct ShadowTotals {
  Tally lost_bytes;         // of the device's, overwritten by the write-back of a line that the CPU had changed, too
  uint64_t needless_lines;  // synced while neither side had changed them
  uint64_t moved_lines;     // synced while one had
};

// A piece of the program's memory and the device's view of it. The view is as long as the pages that the piece lies in.
// Bytes that share a line with the region and are not part of it count nowhere here. The shadow's own.
struct ShadowRegion {
  uintptr_t address = 0;
  size_t length = 0;
  bool peers_read = false;  // by RDMA Read, or an atomic operation
  unsigned char* view = nullptr;
  bool watched = false;
  Tally lost_bytes;
  // Of one that has been removed: a bit for each page in which lines wait for a sync, and how many pages these are.
  std::vector<bool> waits;
  size_t num_waiting = 0;
  Tally unsynced;  // in pages that wait no more

  uintptr_t end() const { return address + length; }
};

// The findings in a region.
struct ShadowFindings {
  uintptr_t address;
  size_t length;
  // Lines with a byte that the device has changed and that was never synced.
  Tally unsynced;
  // Lines of a region that peers may read with a byte that the CPU has changed, while no sync has ever moved the line.
  Tally unclean;
  Tally lost_bytes;
  // Lines that a sync found with nothing to move. That is not wrong.
  Tally needless;
};

// A page of the program has one shadow, however many regions lie over it. All is safe from any thread; in a child of
// fork() nothing is done any more, as the device goes on with the parent's.
class Shadow {
 public:
  static constexpr size_t kPage = ShadowPages::kPage;
  static constexpr size_t kLine = ShadowPages::kLine;
  // Of regions that have been removed as much is kept for a sync that comes late; then the oldest is given up.
  static constexpr size_t kMaxWaitingPages = size_t{1} << 14;  // 64 MiB
  static constexpr size_t kMaxWaitingRegions = 1024;

  // Told of what is wrong, with the lock held.
  using Tell = void (*)(const ShadowFindings& findings);

  Shadow() = default;
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // page_size: the kernel's, a multiple of kPage. Returns null, or why there can be none: static, for people.
  const char* open(Tell teller, size_t page_size);

  // Gives the region's pages shadows with the program's contents, unless another region has given them one, and maps
  // them for the device. The view keeps the address's place in its page. Returns 0 or an errno: EFAULT where the
  // program's memory is not readable.
  int add(uintptr_t address, size_t length, bool peers_read, ShadowRegion** region);
  // Tells what is wrong in the region. Lines that the device has changed can still be synced: they are told of when
  // their memory is registered anew, when there are too many, or by tell_all(). All else goes with the last region over
  // a page. The program's memory is left as it is.
  void remove(ShadowRegion* region);
  // Peers may read the region from now on, or not.
  void set_peers_read(ShadowRegion* region, bool peers_read);

  // Tells of every region, those that have been removed included.
  void tell_all();

  // The effect of the instructions on lines with a byte of the range: both write back lines that the CPU has changed,
  // and the second also shows the CPU the device's changes. Memory without a shadow does not change.
  void clean(uintptr_t address, size_t length);
  void clean_invalidate(uintptr_t address, size_t length);

  // The bytes of the range that the CPU has changed since they were synced.
  Tally dirty_bytes(uintptr_t address, size_t length);

  // From here on the process reports the first read, by any thread, of a line in a watched region's whole pages that
  // the device has changed since it was synced, with the instruction's place; then it goes on without. Takes SIGSEGV
  // and SIGTRAP, and hands on those that are not its own. System calls that are given such memory fail with EFAULT.
  // False where the CPU is another than x86-64. One shadow of the process at a time.
  bool start_watch();
  // Once the region has been added; remove() ends it. False where its pages cannot be closed one by one.
  bool watch(ShadowRegion* region);
  // So that the range can be looked at by the kernel. Until the next sync.
  void open_pages_of(uintptr_t address, size_t length);

  // For the signal handlers.
  enum class Access { kNotOurs, kAgain, kOpened, kStep };
  // The outcome of an access that failed: the page is not watched; another thread has opened the page, or it is open
  // for good; or the page is open for one instruction, after which the caller calls close_page().
  Access on_access(uintptr_t address, bool is_read, uintptr_t instruction);
  void close_page(uintptr_t page_address);
  Shadow* watched_before() const { return before_; }
  // Grows when a page ceases to be watched.
  static uint64_t openings();

  // True in a child of fork().
  bool in_child() const;
  ShadowTotals totals();
  size_t num_regions();
  // Pages of the program that have a shadow.
  size_t num_pages();

 private:
  struct Span {
    uintptr_t begin;
    uintptr_t end;
  };

  Span pages_of(uintptr_t address, size_t length) const;
  int take(Span pages);
  void let_go(Span pages);
  void give_back_unused(Span pages);
  void wait_for_syncs(ShadowRegion* region);
  void settle(ShadowPages::Chunk& chunk, size_t index, bool give_up);
  void give_up_waiting(Span pages);
  void forget_oldest();
  void finish(ShadowRegion* region);
  void sync(uintptr_t address, size_t length, bool invalidate);
  bool sync_line(ShadowPages::Chunk& chunk, uintptr_t line, bool invalidate);
  void note_lost(ShadowPages::Chunk& chunk, uintptr_t line, const void* device, const void* agreed);
  ShadowFindings look_at(const ShadowRegion& region);
  void look_at_unsynced(const ShadowRegion& region, Span part, Tally* tally);
  void look_at_cpu_side(const ShadowRegion& region, ShadowFindings* findings);
  void tell(const ShadowFindings& findings);
  void stop_watch();
  void unwatch(const ShadowRegion& region);
  void open_pages(Span pages);
  void begin_sync(ShadowPages::Page& page, uintptr_t address);
  void end_sync(ShadowPages::Page& page, uintptr_t address);
  void close(uintptr_t page_address);
  void tell_stale_read(uintptr_t address, uintptr_t instruction);

  QuietLock lock_;
  int owner_ = 0;
  size_t page_size_ = kPage;
  Tell tell_ = nullptr;
  ShadowPages pages_;
  std::vector<ShadowRegion*> regions_;
  std::vector<ShadowRegion*> removed_;  // the oldest first
  size_t num_waiting_pages_ = 0;
  Shadow* before_ = nullptr;
  ShadowTotals totals_ = {};
};

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_EMULATOR_SHADOW_HPP
