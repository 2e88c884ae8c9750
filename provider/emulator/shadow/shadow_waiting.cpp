// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Regions that were removed with lines that the device has changed and no sync has moved. On hardware such lines are in
// memory, and a later sync still makes them visible.
#include <string.h>
#include <sys/uio.h>

#include <algorithm>

#include "provider/emulator/shadow/shadow.hpp"

namespace dapple::provider {
namespace {

using Chunk = ShadowPages::Chunk;
using Page = ShadowPages::Page;

}  // namespace

// Marks the pages of a region in which lines wait for a sync. Called while the pages are still in use.
void Shadow::wait_for_syncs(ShadowRegion* region) {
  region->for_each_page([&](uintptr_t page, uintptr_t physical) {
    Tally unsynced;
    look_at_unsynced(*region, page, physical, &unsynced);
    if (unsynced.count == 0) return;
    const Piece& last = region->pieces.back();
    if (region->waits.empty()) region->waits.resize(region->index_of(last.address + last.length));
    region->waits[region->index_of(page)] = true;
    assert(pages_.find_page(physical)->regions > 0);
    ++region->num_waiting;
    ++pages_.find_page(physical)->waiting;
    ++num_waiting_pages_;
  });
}

// Ends the waiting of removed regions for a page: of those without lines to sync there or, if give_up, of all. Does not
// free the page if it is unused then.
void Shadow::settle(Chunk& chunk, size_t index, bool give_up) {
  const uintptr_t physical = chunk.address + index * kPage;
  Page& page = chunk.pages[index];
  const std::vector<ShadowRegion*> removed = chunk.removed;
  for (ShadowRegion* region : removed) {
    const uintptr_t address = region->address_of(physical);
    if (address == 0 || !region->waits[region->index_of(address)]) continue;
    Tally unsynced;
    look_at_unsynced(*region, address, physical, &unsynced);
    if (unsynced.count > 0 && !give_up) continue;
    assert(page.waiting > 0 && num_waiting_pages_ > 0 && region->num_waiting > 0);
    region->unsynced.add(unsynced.count, unsynced.first);
    region->waits[region->index_of(address)] = false;
    --page.waiting;
    --num_waiting_pages_;
    if (--region->num_waiting == 0) finish(region);
  }
  assert(!give_up || page.waiting == 0);
}

// Gives an old page of a region that the device has registered the program's contents. Removed regions no longer wait
// for syncs of it.
void Shadow::begin_anew(uintptr_t address, uintptr_t physical) {
  Chunk& chunk = *pages_.find(physical);
  const size_t index = ShadowPages::index_in(chunk, physical);
  Page& page = chunk.pages[index];
  if (!page.is_old) return;
  settle(chunk, index, true);
  page.is_old = false;
  page.moved = 0;
  page.needless = 0;
  unsigned char* const memory = chunk.memory + index * kPage;
  const iovec to = {memory, kPage};
  const iovec from = {reinterpret_cast<void*>(address), kPage};
  begin_sync(address);
  // If this fails, the program has unmapped the page meanwhile, and nobody needs its contents.
  [[maybe_unused]] const ssize_t copied = process_vm_readv(owner_, &to, 1, &from, 1, 0);
  end_sync(address);
  memcpy(chunk.baseline + index * kPage, memory, kPage);
}

void Shadow::forget_oldest() {
  // The last of these calls deletes the region.
  assert(!removed_.empty());
  std::vector<uintptr_t> waiting;
  [[maybe_unused]] const size_t before = removed_.size();
  const ShadowRegion& oldest = *removed_.front();
  oldest.for_each_page([&](uintptr_t page, uintptr_t physical) {
    if (oldest.waits[oldest.index_of(page)]) waiting.push_back(physical);
  });
  for (const uintptr_t at : waiting) {
    Chunk* chunk = pages_.find(at);
    const size_t index = ShadowPages::index_in(*chunk, at);
    settle(*chunk, index, true);
    if (!chunk->pages[index].is_used()) pages_.give_back(*chunk, at, at + kPage);
  }
  assert(removed_.size() < before);
}

// Reports and deletes a removed region that no longer waits.
void Shadow::finish(ShadowRegion* region) {
  assert(region->num_waiting == 0 &&
         std::find(region->waits.begin(), region->waits.end(), true) == region->waits.end());
  tell({.address = region->address,
        .length = region->length,
        .registered = region->registered,
        .unsynced = region->unsynced,
        .unclean = {},
        .lost_bytes = region->lost_bytes,
        .needless = {}});
  for_each_chunk(*region, [region](Chunk& chunk) {
    chunk.removed.erase(std::find(chunk.removed.begin(), chunk.removed.end(), region));
  });
  removed_.erase(std::find(removed_.begin(), removed_.end(), region));
  discard(region);
}

}  // namespace dapple::provider
