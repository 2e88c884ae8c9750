// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Syncs, which move lines between the two views. The cost of syncing a page does not depend on the number of regions.
#include <sys/uio.h>

#include <bit>
#include <cassert>

#include "provider/emulator/shadow/shadow.hpp"

namespace dapple::provider {
namespace {

// A copy of a line of memory that other threads may write at the same time.
struct Line {
  static constexpr size_t kWords = ShadowPages::kLine / sizeof(uint64_t);
  uint64_t words[kWords];

  bool operator==(const Line&) const = default;

  // Copies a line; memory is its beginning.
  static Line of(const void* memory) {
    assert(reinterpret_cast<uintptr_t>(memory) % sizeof(Line) == 0);
    Line line;
    for (size_t i = 0; i < kWords; ++i) {
      line.words[i] = __atomic_load_n(static_cast<const uint64_t*>(memory) + i, __ATOMIC_RELAXED);
    }
    return line;
  }
  void put(void* memory) const {
    for (size_t i = 0; i < kWords; ++i) {
      __atomic_store_n(static_cast<uint64_t*>(memory) + i, words[i], __ATOMIC_RELAXED);
    }
  }
  // Writes only the words that differ from before: the program may write the others at the same time.
  void put_changes(const Line& before, void* memory) const {
    for (size_t i = 0; i < kWords; ++i) {
      if (words[i] == before.words[i]) continue;
      __atomic_store_n(static_cast<uint64_t*>(memory) + i, words[i], __ATOMIC_RELAXED);
    }
  }
};

using Chunk = ShadowPages::Chunk;
using Page = ShadowPages::Page;

constexpr size_t kLinesOfPage = ShadowPages::kPage / ShadowPages::kLine;
static_assert(kLinesOfPage == 64);

}  // namespace

// line, physical: of the line, at the address of the sync and the shadow's.
void Shadow::note_lost(Chunk& chunk, uintptr_t line, uintptr_t physical, const void* device, const void* agreed) {
  // begin and end: of the part of interest, in the mapping where the line is at `first`.
  const auto note = [&](uintptr_t first, uintptr_t begin, uintptr_t end, Tally* tally) {
    begin = begin > first ? begin : first;
    end = end < first + kLine ? end : first + kLine;
    for (uintptr_t at = begin; at < end; ++at) {
      const size_t i = at - first;
      if (static_cast<const unsigned char*>(device)[i] != static_cast<const unsigned char*>(agreed)[i])
        tally->add(1, at);
    }
  };
  note(line, line, line + kLine, &totals_.lost_bytes);
  const auto note_in = [&](ShadowRegion* region) {
    if (const uintptr_t there = region->address_of(physical)) {
      note(there, region->address, region->end(), &region->lost_bytes);
    }
  };
  for (ShadowRegion* region : chunk.regions) note_in(region);
  for (ShadowRegion* region : chunk.removed) note_in(region);
}

// False if there was nothing to move. Reads each side only once, because either may be written at the same time.
bool Shadow::sync_line(Chunk& chunk, uintptr_t line, uintptr_t physical, bool invalidate) {
  const size_t offset = physical - chunk.address;
  assert(line % kLine == 0 && physical % kPage == line % kPage && offset + kLine <= ShadowPages::kChunk);
  const Line program = Line::of(reinterpret_cast<const void*>(line));
  const Line device = Line::of(chunk.memory + offset);
  const Line agreed = Line::of(chunk.baseline + offset);
  if (program != agreed) {
    // The whole line goes to memory and overwrites the device's data in it.
    if (device != agreed) note_lost(chunk, line, physical, device.words, agreed.words);
    program.put(chunk.baseline + offset);
    program.put(chunk.memory + offset);
  } else if (device != agreed && invalidate) {
    device.put(chunk.baseline + offset);
    device.put_changes(agreed, reinterpret_cast<void*>(line));
  } else {
    return false;
  }
  ++totals_.moved_lines;
  return true;
}

void Shadow::sync(uintptr_t address, size_t length, bool invalidate) {
  if (length == 0 || in_child()) return;
  const SignalSafeLock::Guard guard(lock_);
  const uintptr_t end = address + length < address ? UINTPTR_MAX : address + length;
  uintptr_t line = address & ~(kLine - 1);
  while (line < end) {
    if (pages_.find(line) == nullptr) {
      line = ShadowPages::chunk_of(line) + ShadowPages::kChunk;
      if (line == 0) return;
      continue;
    }
    const uintptr_t page_address = ShadowPages::page_of(line);
    uintptr_t physical = 0;
    Chunk* chunk = pages_.find_shadow(page_address, &physical);
    if (chunk == nullptr || chunk->memory == nullptr ||
        !chunk->pages[ShadowPages::index_in(*chunk, physical)].is_used()) {
      line = page_address + kPage;
      if (line == 0) return;
      continue;
    }
    const size_t index = ShadowPages::index_in(*chunk, physical);
    Page& page = chunk->pages[index];
    begin_sync(page_address);
    uint64_t moved = 0;
    uint64_t needless = 0;
    for (; line < end && line - page_address < kPage; line += kLine) {
      const uint64_t bit = uint64_t{1} << (line % kPage / kLine);
      (sync_line(*chunk, line, physical + (line - page_address), invalidate) ? moved : needless) |= bit;
    }
    end_sync(page_address);
    assert((moved & needless) == 0 && (moved | needless) != 0);
    page.moved |= moved;
    page.needless |= needless;
    totals_.needless_lines += static_cast<unsigned>(std::popcount(needless));
    if (page.waiting > 0) {
      settle(*chunk, index, false);
      if (!page.is_used()) pages_.give_back(*chunk, physical, physical + kPage);
    }
  }
  assert_consistent();
}

void Shadow::clean(uintptr_t address, size_t length) {
  sync(address, length, false);
}

void Shadow::clean_invalidate(uintptr_t address, size_t length) {
  sync(address, length, true);
}

// Counts the bytes of part that the CPU has changed since the last sync. part: within one page, which the program may
// have unmapped; then nothing is counted. baseline: of the page.
void Shadow::add_dirty(const unsigned char* baseline, Span part, Tally* dirty) const {
  assert(part.begin < part.end && part.end - ShadowPages::page_of(part.begin) <= kPage);
  alignas(kLine) unsigned char program[kPage];
  const uintptr_t page_address = ShadowPages::page_of(part.begin);
  const iovec to = {program, kPage};
  const iovec from = {reinterpret_cast<void*>(page_address), kPage};
  if (process_vm_readv(owner_, &to, 1, &from, 1, 0) != static_cast<ssize_t>(kPage)) return;
  for (uintptr_t at = part.begin; at < part.end; ++at) {
    if (program[at - page_address] != baseline[at - page_address]) dirty->add(1, at);
  }
}

Tally Shadow::dirty_bytes(uintptr_t address, size_t length) {
  Tally dirty;
  if (length == 0 || in_child()) return dirty;
  const SignalSafeLock::Guard guard(lock_);
  const uintptr_t end = address + length;
  while (address < end) {
    const uintptr_t page_address = ShadowPages::page_of(address);
    const uintptr_t part_end = end < page_address + kPage ? end : page_address + kPage;
    uintptr_t physical = 0;
    Chunk* chunk = pages_.find_shadow(page_address, &physical);
    if (chunk != nullptr && chunk->memory != nullptr &&
        chunk->pages[ShadowPages::index_in(*chunk, physical)].is_used()) {
      begin_sync(page_address);
      add_dirty(chunk->baseline + (physical - chunk->address), {address, part_end}, &dirty);
      end_sync(page_address);
    }
    address = part_end;
  }
  return dirty;
}

}  // namespace dapple::provider
