// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Regions that were removed with lines that the device has changed and no sync has moved. On hardware such lines are in
// memory, and a later sync still makes them visible.
#include <algorithm>

#include "provider/emulator/shadow.hpp"

namespace dapple::provider {
namespace {

using Chunk = ShadowPages::Chunk;
using Page = ShadowPages::Page;

size_t index_of(const ShadowRegion& region, uintptr_t page_address) {
  return (page_address - ShadowPages::page_of(region.address)) / ShadowPages::kPage;
}

}  // namespace

// Marks the pages of a region in which lines wait for a sync. Called while the pages are still in use.
void Shadow::wait_for_syncs(ShadowRegion* region) {
  const uintptr_t begin = ShadowPages::page_of(region->address);
  for (uintptr_t at = begin; at < region->end(); at += kPage) {
    Tally unsynced;
    look_at_unsynced(*region, {at, at + kPage}, &unsynced);
    if (unsynced.count == 0) continue;
    if (region->waits.empty()) region->waits.resize(index_of(*region, region->end() - 1) + 1);
    region->waits[index_of(*region, at)] = true;
    ++region->num_waiting;
    Chunk* chunk = pages_.find(at);
    ++chunk->pages[ShadowPages::index_in(*chunk, at)].waiting;
    ++num_waiting_pages_;
  }
}

// Ends the waiting of removed regions for a page: of those without lines to sync there or, if give_up, of all. Does not
// free the page if it is unused then.
void Shadow::settle(Chunk& chunk, size_t index, bool give_up) {
  const uintptr_t page_address = chunk.address + index * kPage;
  Page& page = chunk.pages[index];
  const std::vector<ShadowRegion*> removed = chunk.removed;
  for (ShadowRegion* region : removed) {
    if (page_address + kPage <= region->address || page_address >= region->end()) continue;
    const auto waits = region->waits[index_of(*region, page_address)];
    if (!waits) continue;
    Tally unsynced;
    look_at_unsynced(*region, {page_address, page_address + kPage}, &unsynced);
    if (unsynced.count > 0 && !give_up) continue;
    region->unsynced.add(unsynced.count, unsynced.first);
    region->waits[index_of(*region, page_address)] = false;
    --page.waiting;
    --num_waiting_pages_;
    if (--region->num_waiting == 0) finish(region);
  }
}

// Ends the waiting for pages that are about to be registered again, unless another region is over them.
void Shadow::give_up_waiting(Span pages) {
  if (num_waiting_pages_ == 0) return;
  for (uintptr_t at = pages.begin; at < pages.end; at += kPage) {
    Chunk* chunk = pages_.find(at);
    if (chunk == nullptr) continue;
    const size_t index = ShadowPages::index_in(*chunk, at);
    if (chunk->pages[index].regions != 0 || chunk->pages[index].waiting == 0) continue;
    settle(*chunk, index, true);
    pages_.give_back(*chunk, at, at + kPage);
  }
}

void Shadow::forget_oldest() {
  const ShadowRegion& oldest = *removed_.front();
  const Span pages = {ShadowPages::page_of(oldest.address), ShadowPages::page_of(oldest.end() - 1) + kPage};
  const size_t before = removed_.size();
  for (uintptr_t at = pages.begin; at < pages.end && removed_.size() == before; at += kPage) {
    if (!removed_.front()->waits[index_of(*removed_.front(), at)]) continue;
    Chunk* chunk = pages_.find(at);
    Page& page = chunk->pages[ShadowPages::index_in(*chunk, at)];
    settle(*chunk, ShadowPages::index_in(*chunk, at), true);
    if (!page.is_used()) pages_.give_back(*chunk, at, at + kPage);
  }
}

// Reports and deletes a removed region that no longer waits.
void Shadow::finish(ShadowRegion* region) {
  tell({.address = region->address,
        .length = region->length,
        .registered = region->registered,
        .unsynced = region->unsynced,
        .unclean = {},
        .lost_bytes = region->lost_bytes,
        .needless = {}});
  const Span pages = pages_of(region->address, region->length);
  for (uintptr_t at = pages.begin; at < pages.end; at = ShadowPages::chunk_of(at) + ShadowPages::kChunk) {
    auto& list = pages_.find(at)->removed;
    list.erase(std::find(list.begin(), list.end(), region));
  }
  removed_.erase(std::find(removed_.begin(), removed_.end(), region));
  delete region;
}

}  // namespace dapple::provider
