// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory that a device works on in place of the program's, as if the CPU's caches lay in between: the program's memory
// is what the CPU sees through its caches, the shadow is memory itself. Only syncs move lines from one to the other,
// whole, and with the hazards of hardware.
#ifndef DAPPLE_PROVIDER_EMULATOR_SHADOW_HPP
#define DAPPLE_PROVIDER_EMULATOR_SHADOW_HPP

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

namespace dapple::provider {

// What syncs have met so far.
struct ShadowReport {
  uint64_t lost_bytes;      // of the device's, overwritten by the write-back of a line that the CPU had changed, too
  uintptr_t first_lost;     // the address of the first
  uint64_t needless_syncs;  // lines synced that neither side had changed
  uint64_t moved_lines;     // lines synced that one had
};

// A piece of the program's memory and the device's view of it. The view is as long as the pages that the piece lies in.
// What lies in a line with bytes of the region and is none of them counts nowhere here.
struct ShadowRegion {
  uintptr_t address = 0;
  size_t length = 0;
  unsigned char* view = nullptr;
  ShadowRegion* next = nullptr;
  bool watched = false;
  // What syncs have met in it since it was added.
  uint64_t lost_bytes = 0;
  uintptr_t first_lost = 0;
  uint64_t needless_lines = 0;
  uintptr_t first_needless = 0;  // the address of the line
};

// A page of the program has one shadow, however many regions lie over it. All is safe from any
// thread; in a child of fork() nothing is done any more, as the device goes on with the parent's.
class Shadow {
 public:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kLine = 64;
  static constexpr size_t kMaxPages = size_t{1} << 22;  // 16 GiB

  Shadow() = default;
  ~Shadow();
  Shadow(const Shadow&) = delete;
  Shadow& operator=(const Shadow&) = delete;

  // Reserves address space; memory is taken as regions come. False where that is refused.
  bool open();

  // Gives the region's pages shadows with the program's contents, unless they have one, and maps them for the device.
  // The view keeps the address's place in its page. Returns 0 or an errno: EFAULT where the program's memory is not
  // readable.
  int add(ShadowRegion* region);
  // The last region over a page takes its shadow along. The program's memory is left as it is.
  void remove(ShadowRegion* region);

  // Of the region: how many lines hold a byte of it that the device has changed and that was never synced, and the
  // address of the first.
  uint64_t unsynced_lines(const ShadowRegion& region, uintptr_t* first);

  // A copy of the region with what syncs have met in it up to now.
  ShadowRegion look_at(const ShadowRegion& region);

  // What the instructions do to lines that hold a byte of the range: write back those that the CPU has changed, and
  // (the second) let the CPU see what the device has changed. Memory without a shadow is left alone.
  void clean(uintptr_t address, size_t length);
  void clean_invalidate(uintptr_t address, size_t length);

  // From here on the process reports the first read, by any thread, of a line in a watched region's whole pages that
  // the device has changed since it was synced, with the instruction's place; then it goes on without. Takes SIGSEGV
  // and SIGTRAP, and hands on those that are not its own. System calls that are given such memory fail with EFAULT.
  // False where the CPU is another than x86-64. One shadow of the process at a time.
  bool start_watch();
  // Once the region has been added; remove() ends it.
  void watch(ShadowRegion* region);
  // So that the range can be looked at by the kernel. Until the next sync.
  void open_pages_of(uintptr_t address, size_t length);
  // For the signal handlers. False: not about a watched page. step: one instruction may pass, then close_page().
  bool on_access(uintptr_t address, bool is_read, uintptr_t instruction, bool* step);
  void close_page(uintptr_t page_address);
  Shadow* watched_before() const { return before_; }

  ShadowReport report();
  // All regions, for a last look. Not while another thread is at work.
  ShadowRegion* regions() { return regions_; }

 private:
  struct Page;
  class Guard;

  static constexpr size_t kBuckets = size_t{1} << 16;

  bool in_child() const;
  Page* find(uintptr_t page_address);
  int take(uintptr_t page_address);
  void release(uintptr_t page_address);
  void sync(uintptr_t address, size_t length, bool invalidate);
  void stop_watch();
  void unwatch(const ShadowRegion& region);
  void begin_sync(Page* page);
  void end_sync(Page* page);
  void tell_stale_read(uintptr_t address, uintptr_t instruction);
  bool sync_line(size_t index, uintptr_t line, bool invalidate);
  void note_lost(size_t index, uintptr_t line);
  void note_needless(uintptr_t page_address, uint64_t lines);
  unsigned char* memory(size_t index) { return memory_ + index * kPage; }
  unsigned char* baseline(size_t index) { return baseline_ + index * kPage; }

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  int owner_ = 0;
  int file_ = -1;
  // Parallel arrays by a page's index; address space only, until it is touched.
  unsigned char* memory_ = nullptr;    // the file: what the device sees
  unsigned char* baseline_ = nullptr;  // what both agreed on at the last sync
  Page* pages_ = nullptr;
  uint32_t* buckets_ = nullptr;
  uint32_t used_ = 1;  // index 0 means none
  uint32_t free_ = 0;
  size_t file_pages_ = 0;
  ShadowRegion* regions_ = nullptr;
  Shadow* before_ = nullptr;
  ShadowReport report_ = {};
};

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_EMULATOR_SHADOW_HPP
