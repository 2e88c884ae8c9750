// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory that a device uses instead of the program's, as if the CPU's caches were in between: the program's memory
// represents the CPU's view through its caches, and the shadow represents memory itself. Only syncs move lines between
// them, as whole lines, and with the hazards of hardware.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "provider/common/stack.hpp"
#include "provider/emulator/shadow/claims.hpp"
#include "provider/emulator/shadow/physical_addresses.hpp"
#include "provider/emulator/shadow/shadow_pages.hpp"
#include "provider/emulator/shadow/signal_safe_lock.hpp"

namespace dapple::provider {

// A number of lines or bytes, and the address of the first.
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
  Tally lost_bytes;         // the device's, overwritten by the write-back of a line that the CPU had also changed
  uint64_t needless_lines;  // a sync found nothing to move in them
  uint64_t moved_lines;     // a sync copied them to the other side
};

// A piece of the program's memory and the device's view of it. The view covers all pages of the region. Bytes that
// share a line with the region but are not part of it never count here. Only Shadow uses this.
struct ShadowRegion {
  uintptr_t address = 0;
  size_t length = 0;
  bool peers_read = false;     // by RDMA Reads or atomic operations
  bool is_registered = false;  // the device has accepted it
  Stack registered;            // the stack of the call that registered it
  std::vector<Piece> pieces;
  unsigned char* view = nullptr;
  bool watched = false;
  Tally lost_bytes;
  // For a removed region: a bit for each page in which lines wait for a sync, and the number of these pages.
  std::vector<bool> waits;
  size_t num_waiting = 0;
  Tally unsynced;  // lines in pages that no longer wait

  uintptr_t end() const { return address + length; }

  // The pages of its pieces: calls use(address, physical) for each. A physical address that the region has at several
  // addresses counts at the first.
  template <class Use>
  void for_each_page(Use use) const {
    for (const Piece& piece : pieces) {
      for (size_t offset = 0; offset < piece.length; offset += ShadowPages::kPage) {
        if (first_with(piece.physical + offset) == &piece) use(piece.address + offset, piece.physical + offset);
      }
    }
  }
  // The position of a page among its pages.
  size_t index_of(uintptr_t page) const {
    assert(pieces.front().address <= page && page <= pieces.back().address + pieces.back().length);
    return (page - pieces.front().address) / ShadowPages::kPage;
  }
  // The virtual address of a physical one in it; 0 if it has none.
  uintptr_t address_of(uintptr_t physical) const {
    const Piece* piece = first_with(physical);
    return piece == nullptr ? 0 : piece->address + (physical - piece->physical);
  }

 private:
  const Piece* first_with(uintptr_t physical) const {
    for (const Piece& piece : pieces) {
      if (piece.has_physical(physical)) return &piece;
    }
    return nullptr;
  }
};

// The findings in a region.
struct ShadowFindings {
  uintptr_t address;
  size_t length;
  Stack registered;
  // Lines with a byte that the device has changed and that was never synced.
  Tally unsynced;
  // Lines of a region that peers may read with a byte that the CPU has changed, while no sync has ever moved the line.
  Tally unclean;
  Tally lost_bytes;
  // Lines for which a sync had nothing to move. This is not an error.
  Tally needless;
};

// A page of memory has one shadow, with any number of regions and of shared mappings over it. All functions are safe
// from any thread. In a child of fork() they do nothing, because the device continues with the parent's memory.
class Shadow {
 public:
  static constexpr size_t kPage = ShadowPages::kPage;
  static constexpr size_t kLine = ShadowPages::kLine;
  // The limit of removed regions that are kept for late syncs; beyond it the oldest is dropped.
  static constexpr size_t kMaxWaitingPages = size_t{1} << 14;  // 64 MiB
  static constexpr size_t kMaxWaitingRegions = 1024;

  // Called for each region with errors, while the lock is held.
  using Tell = void (*)(const ShadowFindings& findings);

  Shadow() = default;
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // page_size: the kernel's, a multiple of kPage. Returns null, or the reason of a failure in one static line for
  // people.
  const char* open(Tell teller, size_t page_size);

  // False if the program's memory is mapped read-only, which the device itself would refuse. The device registers the
  // shadow, which is always writable. Linux before 5.14 lacks MADV_POPULATE_WRITE; there the result is true.
  bool is_writable(uintptr_t address, size_t length);
  // Gives the region's pages shadows with the program's contents, unless another region has given them one, and maps
  // them for the device. The view begins at the same offset in its page as the address. Returns 0 or an errno: EFAULT
  // if the program's memory is not readable, EBUSY if another process has a shadow of a page of it. Pages in which
  // lines of removed regions wait for a sync keep their shadow until registered().
  int add(uintptr_t address, size_t length, bool peers_read, ShadowRegion** region);
  // The device has registered the region. Reports removed regions with lines that wait for a sync in it.
  void registered(ShadowRegion* region);
  // Reports the errors in the region. Lines that the device has changed can still be synced: they are reported when
  // their memory is registered again, when there are too many, or by tell_all(). Everything else is freed with the last
  // region over a page. The program's memory does not change. A region that was not registered() has no errors.
  void remove(ShadowRegion* region);
  // Tells whether peers may read the region from now on.
  void set_peers_read(ShadowRegion* region, bool peers_read);

  // Reports every region that was registered(), removed regions included. Returns the totals; empty, without a report,
  // if the lock is not free in this time, and in a child of fork().
  std::optional<ShadowTotals> tell_all(std::optional<int> patience_ms = std::nullopt);

  // The effect of cache maintenance on each line with a byte of the range. Both functions write back lines that the CPU
  // has changed. clean_invalidate() also shows the CPU the device's changes. Memory without a shadow does not change.
  void clean(uintptr_t address, size_t length);
  void clean_invalidate(uintptr_t address, size_t length);

  // The bytes of the range that the CPU has changed since they were synced.
  Tally dirty_bytes(uintptr_t address, size_t length);

  // From here on the process watches the pages that lie completely in a watched region. It reports the first read, by
  // any thread, of a line that the device has changed since the last sync, with the instruction's address. Then it
  // stops watching. Takes SIGSEGV and SIGTRAP, and passes on signals that are not its own. System calls with such
  // memory fail with EFAULT. False on a CPU other than x86-64. One shadow of the process at a time.
  bool start_watch();
  // Watches a region that was added; remove() ends the watch. False if the kernel's pages are larger than kPage, so
  // that the pages cannot be closed one by one.
  bool watch(ShadowRegion* region);

  // For the signal handlers.
  enum class Access { kNotOurs, kAgain, kOpened, kStep };
  // The outcome of an access that failed. kNotOurs: the page is not watched, or cannot be opened. kAgain: a watch of
  // the page has ended, so the access may succeed now. kOpened: the page is open for good. kStep: the page is open for
  // one instruction, after which the caller calls close_page().
  Access on_access(uintptr_t address, bool is_read, uintptr_t instruction);
  void close_page(uintptr_t page_address);
  Shadow* watched_before() const { return before_; }
  // Counts the pages whose watch has ended.
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
  // While it exists, system calls may access watched pages. The caller holds the lock.
  class OpenPages {
   public:
    OpenPages(Shadow& shadow, Span pages) : shadow_(shadow), pages_(pages) { shadow_.open_pages(pages_); }
    ~OpenPages() { shadow_.close_pages(pages_); }
    OpenPages(const OpenPages&) = delete;
    OpenPages& operator=(const OpenPages&) = delete;

   private:
    Shadow& shadow_;
    Span pages_;
  };

  // Of virtual addresses; the other functions take physical ones where it says so.
  Span pages_of(uintptr_t address, size_t length) const;
  int take(const std::vector<Piece>& pieces);
  int take(const Piece& piece);
  bool claim(Span physical);
  void give_up_claim(Span physical);
  bool note_physical(const ShadowRegion& region);
  void discard(ShadowRegion* region);
  // Calls use(chunk) once for each chunk with a shadow of the region.
  template <class Use>
  void for_each_chunk(const ShadowRegion& region, Use use) {
    std::vector<ShadowPages::Chunk*> chunks;
    for (const Piece& piece : region.pieces) {
      uintptr_t at = piece.physical;
      for (; at < piece.physical_end(); at = ShadowPages::chunk_of(at) + ShadowPages::kChunk) {
        chunks.push_back(pages_.find(at));
      }
    }
    std::sort(chunks.begin(), chunks.end());
    chunks.erase(std::unique(chunks.begin(), chunks.end()), chunks.end());
    assert(!chunks.empty() && chunks.front() != nullptr);
    for (ShadowPages::Chunk* chunk : chunks) use(*chunk);
  }
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  void let_go(Span physical);
  void give_back_unused(Span physical);
  static Span physical_span(const Piece& piece) { return {piece.physical, piece.physical_end()}; }
  void wait_for_syncs(ShadowRegion* region);
  void settle(ShadowPages::Chunk& chunk, size_t index, bool give_up);
  void begin_anew(uintptr_t address, uintptr_t physical);
  void forget_oldest();
  void finish(ShadowRegion* region);
  void sync(uintptr_t address, size_t length, bool invalidate);
  bool sync_line(ShadowPages::Chunk& chunk, uintptr_t line, uintptr_t physical, bool invalidate);
  void add_dirty(const unsigned char* baseline, Span part, Tally* dirty) const;
  void note_lost(ShadowPages::Chunk& chunk, uintptr_t line, uintptr_t physical, const void* device, const void* agreed);
  ShadowFindings look_at(const ShadowRegion& region);
  void look_at_unsynced(const ShadowRegion& region, uintptr_t page, uintptr_t physical, Tally* tally);
  void look_at_cpu_side(const ShadowRegion& region, ShadowFindings* findings);
  void tell(const ShadowFindings& findings);
  void stop_watch();
  void unwatch(const ShadowRegion& region);
  void open_pages(Span pages);
  void close_pages(Span pages);
  void begin_sync(uintptr_t page_address);
  void end_sync(uintptr_t page_address);
  void close(uintptr_t page_address);
  void tell_stale_read(uintptr_t address, uintptr_t instruction);

  SignalSafeLock lock_;
  int owner_ = 0;
  size_t page_size_ = kPage;
  Tell tell_ = nullptr;
  ShadowPages pages_;
  PhysicalAddresses physical_addresses_;
  Claims claims_;
  std::vector<ShadowRegion*> regions_;
  std::vector<ShadowRegion*> removed_;  // the oldest first
  size_t num_waiting_pages_ = 0;
  Shadow* before_ = nullptr;
  ShadowTotals totals_ = {};
};

}  // namespace dapple::provider
