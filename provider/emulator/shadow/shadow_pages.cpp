// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/shadow/shadow_pages.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <limits>
#include <new>

#include "provider/common/file_limit.hpp"

namespace dapple::provider {

ShadowPages::~ShadowPages() {
  for (size_t i = 0; buckets_ != nullptr && i < kBuckets; ++i) {
    while (Chunk* chunk = buckets_[i]) {
      buckets_[i] = chunk->next;
      unmap_chunk(*chunk);
      delete chunk;
    }
  }
  free(buckets_);
  if (file_ >= 0) close(file_);
}

const char* ShadowPages::open() {
  // A page's physical address is its offset in the file.
  if (!file_may_have(std::numeric_limits<off_t>::max())) {
    return "the emulator needs a large sparse file, but the size of files is limited (ulimit -f)";
  }
  file_ = memfd_create("dapple-shadow", MFD_CLOEXEC);
  buckets_ = static_cast<Chunk**>(calloc(kBuckets, sizeof(Chunk*)));
  return file_ >= 0 && buckets_ != nullptr ? nullptr : "no memory is available for the emulator";
}

ShadowPages::Chunk** ShadowPages::bucket_of(uintptr_t chunk_address) const {
  return &buckets_[chunk_address / kChunk % kBuckets];
}

ShadowPages::Chunk* ShadowPages::find(uintptr_t address) const {
  Chunk* chunk = *bucket_of(chunk_of(address));
  while (chunk != nullptr && chunk->address != chunk_of(address)) chunk = chunk->next;
  return chunk;
}

bool ShadowPages::map_chunk(Chunk& chunk) {
  assert(chunk.memory == nullptr && chunk.baseline == nullptr && chunk.num_used == 0);
  if (chunk.address + kChunk > file_size_) {
    if (ftruncate(file_, static_cast<off_t>(chunk.address + kChunk)) != 0) return false;
    file_size_ = chunk.address + kChunk;
  }
  void* memory = mmap(nullptr, kChunk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_,
                      static_cast<off_t>(chunk.address));
  if (memory == MAP_FAILED) return false;
  void* baseline = mmap(nullptr, kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (baseline == MAP_FAILED) {
    munmap(memory, kChunk);
    return false;
  }
  madvise(baseline, kChunk, MADV_NOHUGEPAGE);
  chunk.memory = static_cast<unsigned char*>(memory);
  chunk.baseline = static_cast<unsigned char*>(baseline);
  return true;
}

void ShadowPages::unmap_chunk(Chunk& chunk) {
  if (chunk.memory == nullptr) return;
  assert(chunk.baseline != nullptr);
  munmap(chunk.memory, kChunk);
  munmap(chunk.baseline, kChunk);
  chunk.memory = nullptr;
  chunk.baseline = nullptr;
}

ShadowPages::Page* ShadowPages::find_page(uintptr_t address) const {
  Chunk* chunk = find(address);
  return chunk == nullptr ? nullptr : &chunk->pages[index_in(*chunk, address)];
}

ShadowPages::Chunk* ShadowPages::find_shadow(uintptr_t address, uintptr_t* physical) const {
  Chunk* chunk = find(address);
  *physical = address;
  if (chunk == nullptr) return nullptr;
  const uintptr_t elsewhere = chunk->pages[index_in(*chunk, address)].elsewhere;
  if (elsewhere == 0) return chunk;
  assert(PhysicalAddresses::is_shared(elsewhere));
  *physical = elsewhere + (address - page_of(address));
  return find(*physical);
}

ShadowPages::Chunk* ShadowPages::make(uintptr_t address) {
  Chunk* chunk = find(address);
  if (chunk != nullptr) return chunk;
  chunk = new (std::nothrow) Chunk();
  if (chunk == nullptr) return nullptr;
  chunk->address = chunk_of(address);
  Chunk** bucket = bucket_of(chunk->address);
  chunk->next = *bucket;
  *bucket = chunk;
  return chunk;
}

ShadowPages::Chunk* ShadowPages::prepare(uintptr_t address) {
  Chunk* chunk = make(address);
  return chunk != nullptr && (chunk->memory != nullptr || map_chunk(*chunk)) ? chunk : nullptr;
}

void ShadowPages::give_back(Chunk& chunk, uintptr_t begin, uintptr_t end) {
  const size_t num_pages = (end - begin) / kPage;
  assert(begin < end && chunk.address <= begin && end <= chunk.address + kChunk);
  assert(chunk.memory != nullptr && num_pages <= chunk.num_used && chunk.num_used <= num_used_);
  num_used_ -= num_pages;
  chunk.num_used -= num_pages;
  // If the kernel refuses, the memory only stays in use.
  if (fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                static_cast<off_t>(end - begin)) != 0) {
    madvise(chunk.memory + (begin - chunk.address), end - begin, MADV_DONTNEED);
  }
  if (chunk.num_used == 0) {
    unmap_chunk(chunk);
  } else {
    madvise(chunk.baseline + (begin - chunk.address), end - begin, MADV_DONTNEED);
  }
}

unsigned char* ShadowPages::map(const std::vector<Piece>& pieces) {
  assert(!pieces.empty());
  size_t length = 0;
  for (const Piece& piece : pieces) length += piece.length;
  constexpr int kRights = PROT_READ | PROT_WRITE;
  constexpr int kFlags = MAP_SHARED | MAP_NORESERVE;
  if (pieces.size() == 1) {
    void* view = mmap(nullptr, length, kRights, kFlags, file_, static_cast<off_t>(pieces[0].physical));
    return view == MAP_FAILED ? nullptr : static_cast<unsigned char*>(view);
  }
  void* reserved = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* const view = static_cast<unsigned char*>(reserved);
  unsigned char* at = view;
  for (const Piece& piece : pieces) {
    if (mmap(at, piece.length, kRights, kFlags | MAP_FIXED, file_, static_cast<off_t>(piece.physical)) == MAP_FAILED) {
      munmap(view, length);
      return nullptr;
    }
    at += piece.length;
  }
  assert(at == view + length);
  return view;
}

}  // namespace dapple::provider
