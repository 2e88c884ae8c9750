// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Adding and removing regions.
#include "provider/emulator/shadow/shadow.hpp"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "provider/emulator/shadow/finding.hpp"

namespace dapple::provider {
namespace {

using Chunk = ShadowPages::Chunk;
using Page = ShadowPages::Page;

constexpr size_t kPage = Shadow::kPage;

void forget(std::vector<ShadowRegion*>& list, const ShadowRegion* region) {
  const auto found = std::find(list.begin(), list.end(), region);
  assert(found != list.end());
  list.erase(found);
}

// True if each page from begin to end is readable. Asks the kernel, because a load would fault.
bool is_readable(int process, uintptr_t begin, uintptr_t end) {
  constexpr size_t kAtOnce = 512;
  char bytes[kAtOnce];
  iovec from[kAtOnce];
  while (begin < end) {
    size_t count = 0;
    for (; count < kAtOnce && begin < end; ++count, begin += kPage) from[count] = {reinterpret_cast<void*>(begin), 1};
    const iovec to = {bytes, count};
    if (process_vm_readv(process, &to, 1, from, count, 0) != static_cast<ssize_t>(count)) return false;
  }
  return true;
}

}  // namespace

const char* Shadow::open(Tell teller, size_t page_size) {
  tell_ = teller;
  page_size_ = page_size;
  owner_ = getpid();
  return pages_.open();
}

Shadow::~Shadow() {
  stop_watch();
  for (const ShadowRegion* region : regions_) delete region;
  for (const ShadowRegion* region : removed_) delete region;
}

bool Shadow::in_child() const {
  return getpid() != owner_;
}

void Shadow::assert_consistent() const {
  assert(SignalSafeLock::is_held_here());
  // Only regions use pages: those that are registered, and removed ones that wait for syncs.
  assert(!regions_.empty() || !removed_.empty() || pages_.num_used() == 0);
  assert(removed_.empty() == (num_waiting_pages_ == 0) && removed_.size() <= num_waiting_pages_);
  assert(removed_.size() <= kMaxWaitingRegions && num_waiting_pages_ <= kMaxWaitingPages);
  assert(regions_.empty() || regions_.back()->view != nullptr);
  assert(removed_.empty() || (removed_.front()->view == nullptr && removed_.front()->num_waiting > 0));
}

Shadow::Span Shadow::pages_of(uintptr_t address, size_t length) const {
  return {address & ~(page_size_ - 1), ((address + length - 1) & ~(page_size_ - 1)) + page_size_};
}

// Counts one more region over each page. Unused pages get a shadow with the program's contents. Returns 0, EBUSY or
// ENOMEM, with nothing changed.
int Shadow::take(const std::vector<Piece>& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int error = take(pieces[i]);
    if (error == 0) continue;
    while (i-- > 0) {
      let_go(physical_span(pieces[i]));
      give_back_unused(physical_span(pieces[i]));
    }
    return error;
  }
  return 0;
}

int Shadow::take(const Piece& piece) {
  assert(piece.length > 0 && piece.length % kPage == 0 && piece.physical % kPage == piece.address % kPage);
  int error = ENOMEM;
  uintptr_t at = piece.physical;
  while (at < piece.physical_end()) {
    Chunk* chunk = pages_.prepare(at);
    if (chunk == nullptr) break;
    const uintptr_t end = std::min(piece.physical_end(), chunk->address + ShadowPages::kChunk);
    while (at < end) {
      size_t index = ShadowPages::index_in(*chunk, at);
      if (Page& page = chunk->pages[index]; page.is_used()) {
        if (page.regions == 0) {
          if (!claim({at, at + kPage})) {
            error = EBUSY;
            break;
          }
          page.is_old = true;
        }
        ++page.regions;
        at += kPage;
        continue;
      }
      uintptr_t fresh_end = at;
      while (fresh_end < end && !chunk->pages[ShadowPages::index_in(*chunk, fresh_end)].is_used()) fresh_end += kPage;
      if (!claim({at, fresh_end})) {
        error = EBUSY;
        break;
      }
      const size_t length = fresh_end - at;
      unsigned char* memory = chunk->memory + (at - chunk->address);
      const iovec to = {memory, length};
      const iovec from = {reinterpret_cast<void*>(piece.address + (at - piece.physical)), length};
      if (process_vm_readv(owner_, &to, 1, &from, 1, 0) != static_cast<ssize_t>(length)) {
        give_up_claim({at, fresh_end});
        break;
      }
      memcpy(chunk->baseline + (at - chunk->address), memory, length);
      for (; at < fresh_end; at += kPage, ++index) {
        Page& page = chunk->pages[index];
        page.regions = 1;
        page.moved = 0;
        page.needless = 0;
        page.is_old = false;
        pages_.use(*chunk, 1);
      }
    }
    if (at < end) break;
  }
  if (at == piece.physical_end()) return 0;
  let_go({piece.physical, at});
  give_back_unused({piece.physical, at});
  return error;
}

// False if another process has a shadow of one of these pages.
bool Shadow::claim(Span physical) {
  return !PhysicalAddresses::is_shared(physical.begin) ||
         claims_.claim(physical_addresses_.number_of(physical.begin), (physical.end - physical.begin) / kPage);
}

void Shadow::let_go(Span physical) {
  uintptr_t begin = physical.begin;  // of a run of pages that no region has any more
  for (uintptr_t at = physical.begin; at < physical.end; at += kPage) {
    Page& page = *pages_.find_page(at);
    assert(page.regions > 0);
    if (--page.regions == 0) continue;
    give_up_claim({begin, at});
    begin = at + kPage;
  }
  give_up_claim({begin, physical.end});
}

void Shadow::give_up_claim(Span physical) {
  if (physical.begin >= physical.end || !PhysicalAddresses::is_shared(physical.begin)) return;
  claims_.give_up(physical_addresses_.number_of(physical.begin), (physical.end - physical.begin) / kPage);
}

// Frees the memory of unused pages, one run of pages at a time; a run does not cross chunks.
void Shadow::give_back_unused(Span physical) {
  uintptr_t at = physical.begin;
  while (at < physical.end) {
    Chunk* chunk = pages_.find(at);
    const uintptr_t end = std::min(physical.end, ShadowPages::chunk_of(at) + ShadowPages::kChunk);
    if (chunk == nullptr || chunk->memory == nullptr) {
      at = end;
      continue;
    }
    const auto is_used = [chunk](uintptr_t page) {
      return chunk->pages[ShadowPages::index_in(*chunk, page)].is_used();
    };
    while (at < end && is_used(at)) at += kPage;
    uintptr_t unused_end = at;
    while (unused_end < end && !is_used(unused_end)) unused_end += kPage;
    if (unused_end > at) pages_.give_back(*chunk, at, unused_end);
    at = unused_end;
  }
}

bool Shadow::is_writable(uintptr_t address, size_t length) {
  if (in_child()) return true;
  const SignalSafeLock::Guard guard(lock_);
  const Span pages = pages_of(address, length);
  const OpenPages opened(*this, pages);
  void* const begin = reinterpret_cast<void*>(pages.begin);
  if (madvise(begin, pages.end - pages.begin, MADV_POPULATE_WRITE) == 0) return true;
  return errno == EINVAL && madvise(begin, 0, MADV_POPULATE_WRITE) != 0;
}

int Shadow::add(uintptr_t address, size_t length, bool peers_read, ShadowRegion** added) {
  if (in_child()) return EOPNOTSUPP;
  const Stack registered = stack_here();
  const SignalSafeLock::Guard guard(lock_);
  const Span pages = pages_of(address, length);
  const OpenPages opened(*this, pages);
  if (!is_readable(owner_, pages.begin, pages.end)) return EFAULT;
  auto* region = new (std::nothrow) ShadowRegion;
  if (region == nullptr) return ENOMEM;
  region->address = address;
  region->length = length;
  region->peers_read = peers_read;
  region->registered = registered;
  int error = physical_addresses_.cut(pages.begin, pages.end, &region->pieces);
  if (error == 0) error = take(region->pieces);
  if (error != 0) {
    delete region;
    assert_consistent();
    return error;
  }
  assert(region->pieces.front().address == pages.begin);
  assert(region->pieces.back().address + region->pieces.back().length == pages.end);
  region->view = pages_.map(region->pieces);
  if (region->view == nullptr || !note_physical(*region)) {
    if (region->view != nullptr) munmap(region->view, pages.end - pages.begin);
    for (const Piece& piece : region->pieces) {
      let_go(physical_span(piece));
      give_back_unused(physical_span(piece));
    }
    delete region;
    assert_consistent();
    return ENOMEM;
  }
  region->view += address - pages.begin;
  regions_.push_back(region);
  for_each_chunk(*region, [region](Chunk& chunk) { chunk.regions.push_back(region); });
  *added = region;
  assert_consistent();
  return 0;
}

void Shadow::registered(ShadowRegion* region) {
  if (in_child()) return;
  const SignalSafeLock::Guard guard(lock_);
  assert(!region->is_registered && region->view != nullptr);
  region->for_each_page([this](uintptr_t address, uintptr_t physical) { begin_anew(address, physical); });
  region->is_registered = true;
  assert_consistent();
}

// Notes at the addresses of a region where its shadows are. False without memory, with nothing changed.
bool Shadow::note_physical(const ShadowRegion& region) {
  for (const Piece& piece : region.pieces) {
    uintptr_t at = piece.address;
    for (; at < piece.address + piece.length; at = ShadowPages::chunk_of(at) + ShadowPages::kChunk) {
      if (pages_.make(at) == nullptr) return false;
    }
  }
  for (const Piece& piece : region.pieces) {
    for (size_t offset = 0; offset < piece.length; offset += kPage) {
      Page& page = *pages_.find_page(piece.address + offset);
      page.elsewhere = PhysicalAddresses::is_shared(piece.physical) ? piece.physical + offset : 0;
      ++page.noted;
    }
  }
  return true;
}

// Deletes a region. When the last is gone, other memory may come to its addresses.
void Shadow::discard(ShadowRegion* region) {
  assert(region->view == nullptr && region->num_waiting == 0);
  for (const Piece& piece : region->pieces) {
    for (uintptr_t at = piece.address; at < piece.address + piece.length; at += kPage) {
      Page& page = *pages_.find_page(at);
      assert(page.noted > 0);
      if (--page.noted == 0) page.elsewhere = 0;
    }
  }
  delete region;
}

void Shadow::remove(ShadowRegion* region) {
  if (in_child()) return;
  const SignalSafeLock::Guard guard(lock_);
  const Span pages = pages_of(region->address, region->length);
  assert(region->view != nullptr && region->num_waiting == 0);
  unwatch(*region);
  munmap(region->view - (region->address - pages.begin), pages.end - pages.begin);
  region->view = nullptr;

  if (region->is_registered) {
    const OpenPages opened(*this, pages);  // another region may watch them
    ShadowFindings findings = look_at(*region);
    wait_for_syncs(region);
    findings.unsynced = {};
    tell(findings);
  }
  region->lost_bytes = {};

  forget(regions_, region);
  for (const Piece& piece : region->pieces) let_go(physical_span(piece));
  for_each_chunk(*region, [region](Chunk& chunk) {
    forget(chunk.regions, region);
    if (region->num_waiting > 0) chunk.removed.push_back(region);
  });
  for (const Piece& piece : region->pieces) give_back_unused(physical_span(piece));
  if (region->num_waiting == 0) {
    discard(region);
    return assert_consistent();
  }
  removed_.push_back(region);
  while (removed_.size() > kMaxWaitingRegions || num_waiting_pages_ > kMaxWaitingPages) forget_oldest();
  assert_consistent();
}

void Shadow::set_peers_read(ShadowRegion* region, bool peers_read) {
  const SignalSafeLock::Guard guard(lock_);
  region->peers_read = peers_read;
}

ShadowTotals Shadow::totals() {
  const SignalSafeLock::Guard guard(lock_);
  return totals_;
}

size_t Shadow::num_regions() {
  const SignalSafeLock::Guard guard(lock_);
  return regions_.size();
}

size_t Shadow::num_pages() {
  const SignalSafeLock::Guard guard(lock_);
  return pages_.num_used();
}

}  // namespace dapple::provider
