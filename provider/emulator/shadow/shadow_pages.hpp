// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The storage of shadows. A byte's offset in the file is its physical address (physical_addresses.hpp). So adjacent
// bytes are adjacent here, and one mapping shows any piece of a region. The file is sparse: only pages in use take
// memory.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "provider/emulator/shadow/physical_addresses.hpp"

namespace dapple::provider {

struct ShadowRegion;

// Confined: the caller locks.
class ShadowPages {
 public:
  static constexpr size_t kPage = 4096;
  static constexpr size_t kLine = 64;
  static constexpr size_t kChunk = size_t{1} << 21;
  static constexpr size_t kPagesOfChunk = kChunk / kPage;

  // The page at a physical address, and at a virtual one. For private memory both are the same page.
  struct Page {
    // At a physical address. In moved and needless, each bit stands for a line of the page.
    uint32_t regions;   // that have a byte of the page
    uint32_t waiting;   // removed regions with lines in it that were never synced
    uint64_t moved;     // lines that a sync has moved, either way
    uint64_t needless;  // lines that a sync found with nothing to move
    bool is_old;        // its contents are those of removed regions until a region over it is registered
    // At an address.
    uintptr_t elsewhere;  // the physical address of its shadow; 0 if that is here
    uint32_t noted;       // regions with the page at this address, removed ones that wait included
    uint32_t watched;     // watched regions that contain the whole page
    bool was_watched;
    bool in_sync;  // a sync is running, and the page must stay open
    bool is_used() const { return regions != 0 || waiting != 0; }
  };

  // 2 MiB of physical addresses, which include all virtual ones. A chunk lives as long as the table.
  struct Chunk {
    uintptr_t address;
    Chunk* next;
    // Both are null while no page is in use.
    unsigned char* memory;    // the device's view
    unsigned char* baseline;  // the contents of both views after the last sync
    size_t num_used;          // pages
    // The regions with a byte in the chunk.
    std::vector<ShadowRegion*> regions;
    std::vector<ShadowRegion*> removed;
    Page pages[kPagesOfChunk];
  };

  ShadowPages() = default;
  ~ShadowPages();
  ShadowPages(const ShadowPages&) = delete;
  ShadowPages& operator=(const ShadowPages&) = delete;

  // Returns null, or the reason of a failure in one static line for people.
  const char* open();

  static uintptr_t chunk_of(uintptr_t address) { return address & ~(kChunk - 1); }
  static uintptr_t page_of(uintptr_t address) { return address & ~(kPage - 1); }
  static size_t index_in(const Chunk& chunk, uintptr_t address) {
    assert(address - chunk.address < kChunk);
    return (address - chunk.address) / kPage;
  }

  // The chunk that holds the address. Null if no part of it was ever in use.
  Chunk* find(uintptr_t address) const;
  Page* find_page(uintptr_t address) const;
  // The chunk with the shadow of a virtual address, and the physical one. Null if it never had one.
  Chunk* find_shadow(uintptr_t address, uintptr_t* physical) const;
  // Makes the chunk if necessary. Null without memory.
  Chunk* make(uintptr_t address);
  // The same, with memory for the pages. Null without memory or address space.
  Chunk* prepare(uintptr_t address);
  // use() counts pages of the chunk that are now in use. give_back() counts pages that are unused again, and frees
  // their memory.
  void use(Chunk& chunk, size_t num_pages) {
    assert(chunk.memory != nullptr && chunk.num_used + num_pages <= kPagesOfChunk);
    num_used_ += num_pages, chunk.num_used += num_pages;
  }
  void give_back(Chunk& chunk, uintptr_t begin, uintptr_t end);
  size_t num_used() const { return num_used_; }

  // Maps pieces, which have whole pages of the kernel's size, one behind the other for the device. Null if this is
  // refused.
  unsigned char* map(const std::vector<Piece>& pieces);

 private:
  static constexpr size_t kBuckets = size_t{1} << 14;

  Chunk** bucket_of(uintptr_t chunk_address) const;
  bool map_chunk(Chunk& chunk);
  void unmap_chunk(Chunk& chunk);

  int file_ = -1;
  uintptr_t file_size_ = 0;
  Chunk** buckets_ = nullptr;
  size_t num_used_ = 0;
};

}  // namespace dapple::provider
