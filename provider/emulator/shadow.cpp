// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/shadow.hpp"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <bit>

#include "provider/emulator/shadow_page.hpp"

namespace dapple::provider {
namespace {

// Between two pages that nobody may touch: a region that runs past the program's memory does not run into ours.
void* reserve(size_t length, int flags, int file) {
  const size_t whole = length + 2 * Shadow::kPage;
  void* guards = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (guards == MAP_FAILED) return nullptr;
  void* memory = mmap(static_cast<unsigned char*>(guards) + Shadow::kPage, length, PROT_READ | PROT_WRITE,
                      flags | MAP_NORESERVE | MAP_FIXED, file, 0);
  if (memory != MAP_FAILED) return memory;
  munmap(guards, whole);
  return nullptr;
}

void give_back(void* memory, size_t length) {
  if (memory != nullptr) munmap(static_cast<unsigned char*>(memory) - Shadow::kPage, length + 2 * Shadow::kPage);
}

uintptr_t page_of(uintptr_t address) {
  return address & ~(Shadow::kPage - 1);
}

// One past the last page; a region never passes the end of the address space.
uintptr_t end_of_pages(uintptr_t address, size_t length) {
  return page_of(address + length - 1) + Shadow::kPage;
}

// The part of a line that belongs to a region, as offsets into the line.
struct LinePart {
  size_t begin;
  size_t end;
};
LinePart part_of(const ShadowRegion& region, uintptr_t line) {
  const uintptr_t end = region.address + region.length;
  if (line + Shadow::kLine <= region.address || line >= end) return {0, 0};
  return {region.address > line ? region.address - line : 0, end - line < Shadow::kLine ? end - line : Shadow::kLine};
}

size_t count_differences(const unsigned char* a, const unsigned char* b, LinePart part, size_t* first) {
  size_t count = 0;
  for (size_t i = part.begin; i < part.end; ++i) {
    if (a[i] == b[i]) continue;
    if (count == 0) *first = i;
    ++count;
  }
  return count;
}

}  // namespace

bool Shadow::open() {
  file_ = memfd_create("dapple-shadow", MFD_CLOEXEC);
  if (file_ < 0) return false;
  memory_ = static_cast<unsigned char*>(reserve(kMaxPages * kPage, MAP_SHARED, file_));
  baseline_ = static_cast<unsigned char*>(reserve(kMaxPages * kPage, MAP_PRIVATE | MAP_ANONYMOUS, -1));
  pages_ = static_cast<Page*>(reserve(kMaxPages * sizeof(Page), MAP_PRIVATE | MAP_ANONYMOUS, -1));
  buckets_ = static_cast<uint32_t*>(reserve(kBuckets * sizeof(uint32_t), MAP_PRIVATE | MAP_ANONYMOUS, -1));
  owner_ = getpid();
  return memory_ != nullptr && baseline_ != nullptr && pages_ != nullptr && buckets_ != nullptr;
}

Shadow::~Shadow() {
  stop_watch();
  give_back(memory_, kMaxPages * kPage);
  give_back(baseline_, kMaxPages * kPage);
  give_back(pages_, kMaxPages * sizeof(Page));
  give_back(buckets_, kBuckets * sizeof(uint32_t));
  if (file_ >= 0) close(file_);
}

bool Shadow::in_child() const {
  return getpid() != owner_;
}

Shadow::Page* Shadow::find(uintptr_t page_address) {
  uint32_t index = buckets_[(page_address / kPage) % kBuckets];
  while (index != 0 && pages_[index].address != page_address) index = pages_[index].next;
  return index == 0 ? nullptr : &pages_[index];
}

int Shadow::take(uintptr_t page_address) {
  if (Page* page = find(page_address)) {
    ++page->regions;
    return 0;
  }
  uint32_t index = free_;
  if (index == 0) {
    if (used_ == kMaxPages) return ENOMEM;
    if (used_ >= file_pages_) {
      const size_t more = file_pages_ + 1024;
      if (ftruncate(file_, static_cast<off_t>(more * kPage)) != 0) return ENOMEM;
      file_pages_ = more;
    }
    index = used_;
  }
  // Through the kernel, which answers where a load would fault.
  const iovec to = {memory(index), kPage};
  const iovec from = {reinterpret_cast<void*>(page_address), kPage};
  const ssize_t copied = process_vm_readv(owner_, &to, 1, &from, 1, 0);
  if (copied != static_cast<ssize_t>(kPage)) return copied < 0 ? errno : EFAULT;
  memcpy(baseline(index), memory(index), kPage);

  if (index == free_) {
    free_ = pages_[index].next;
  } else {
    ++used_;
  }
  uint32_t& bucket = buckets_[(page_address / kPage) % kBuckets];
  pages_[index] = {page_address, 1, bucket, 0, false};
  bucket = index;
  return 0;
}

void Shadow::release(uintptr_t page_address) {
  Page* page = find(page_address);
  if (--page->regions > 0) return;
  const auto index = static_cast<uint32_t>(page - pages_);
  uint32_t* link = &buckets_[(page_address / kPage) % kBuckets];
  while (*link != index) link = &pages_[*link].next;
  *link = page->next;
  page->address = 0;
  page->next = free_;
  free_ = index;
}

int Shadow::add(ShadowRegion* region) {
  if (in_child()) return EOPNOTSUPP;
  const Guard guard(*this);
  const uintptr_t begin = page_of(region->address);
  const uintptr_t end = end_of_pages(region->address, region->length);
  void* view = mmap(nullptr, end - begin, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (view == MAP_FAILED) return ENOMEM;
  region->view = static_cast<unsigned char*>(view);

  int error = 0;
  uintptr_t taken = begin;
  while (taken < end) {
    error = take(taken);
    if (error != 0) break;
    taken += kPage;
  }
  // Neighbours in the file are mapped at once.
  for (uintptr_t at = begin; at < end && error == 0;) {
    const auto index = static_cast<size_t>(find(at) - pages_);
    size_t count = 1;
    while (at + count * kPage < end && static_cast<size_t>(find(at + count * kPage) - pages_) == index + count) ++count;
    if (mmap(region->view + (at - begin), count * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_,
             static_cast<off_t>(index * kPage)) == MAP_FAILED) {
      error = ENOMEM;
    }
    at += count * kPage;
  }
  if (error != 0) {
    for (uintptr_t at = begin; at < taken; at += kPage) release(at);
    munmap(view, end - begin);
    region->view = nullptr;
    return error;
  }
  region->next = regions_;
  regions_ = region;
  return 0;
}

void Shadow::remove(ShadowRegion* region) {
  if (in_child()) return;
  const Guard guard(*this);
  const uintptr_t begin = page_of(region->address);
  const uintptr_t end = end_of_pages(region->address, region->length);
  unwatch(*region);
  for (uintptr_t at = begin; at < end; at += kPage) release(at);
  munmap(region->view, end - begin);
  ShadowRegion** link = &regions_;
  while (*link != region) link = &(*link)->next;
  *link = region->next;
}

uint64_t Shadow::unsynced_lines(const ShadowRegion& region, uintptr_t* first) {
  if (in_child()) return 0;
  const Guard guard(*this);
  uint64_t count = 0;
  const uintptr_t end = region.address + region.length;
  for (uintptr_t line = region.address & ~(kLine - 1); line < end; line += kLine) {
    const auto index = static_cast<size_t>(find(page_of(line)) - pages_);
    const size_t offset = line % kPage;
    const LinePart part = part_of(region, line);
    if (memcmp(memory(index) + offset + part.begin, baseline(index) + offset + part.begin, part.end - part.begin) == 0)
      continue;
    if (count == 0) *first = line < region.address ? region.address : line;
    ++count;
  }
  return count;
}

ShadowRegion Shadow::look_at(const ShadowRegion& region) {
  const Guard guard(*this);
  return region;
}

void Shadow::note_lost(size_t index, uintptr_t line) {
  const unsigned char* device = memory(index) + line % kPage;
  const unsigned char* agreed = baseline(index) + line % kPage;
  size_t first = 0;
  const size_t lost = count_differences(device, agreed, {0, kLine}, &first);
  if (report_.lost_bytes == 0) report_.first_lost = line + first;
  report_.lost_bytes += lost;
  for (ShadowRegion* region = regions_; region != nullptr; region = region->next) {
    const size_t of_it = count_differences(device, agreed, part_of(*region, line), &first);
    if (of_it > 0 && region->lost_bytes == 0) region->first_lost = line + first;
    region->lost_bytes += of_it;
  }
}

// lines: a bit for each of the page.
void Shadow::note_needless(uintptr_t page_address, uint64_t lines) {
  static_assert(kPage / kLine == 64);
  if (lines == 0) return;
  report_.needless_syncs += static_cast<unsigned>(std::popcount(lines));
  for (ShadowRegion* region = regions_; region != nullptr; region = region->next) {
    if (region->address >= page_address + kPage || region->address + region->length <= page_address) continue;
    uint64_t of_it = 0;
    for (uintptr_t i = 0; i < kPage / kLine; ++i) {
      const LinePart part = part_of(*region, page_address + i * kLine);
      if (part.begin < part.end) of_it |= lines & uint64_t{1} << i;
    }
    if (of_it == 0) continue;
    if (region->needless_lines == 0) {
      const uintptr_t line = page_address + static_cast<unsigned>(std::countr_zero(of_it)) * kLine;
      region->first_needless = line < region->address ? region->address : line;
    }
    region->needless_lines += static_cast<unsigned>(std::popcount(of_it));
  }
}

// False: there was nothing to move.
bool Shadow::sync_line(size_t index, uintptr_t line, bool invalidate) {
  auto* program = reinterpret_cast<unsigned char*>(line);
  unsigned char* device = memory(index) + line % kPage;
  unsigned char* agreed = baseline(index) + line % kPage;
  const bool dirty = memcmp(program, agreed, kLine) != 0;
  const bool changed = memcmp(device, agreed, kLine) != 0;
  if (dirty) {
    // The whole line goes to memory, over whatever the device has put into it.
    if (changed) note_lost(index, line);
    memcpy(agreed, program, kLine);
    memcpy(device, program, kLine);
  } else if (changed && invalidate) {
    memcpy(agreed, device, kLine);
    memcpy(program, agreed, kLine);
  } else {
    return false;
  }
  ++report_.moved_lines;
  return true;
}

void Shadow::sync(uintptr_t address, size_t length, bool invalidate) {
  if (length == 0 || in_child()) return;
  const Guard guard(*this);
  const uintptr_t end = address + length < address ? UINTPTR_MAX : address + length;
  uintptr_t line = address & ~(kLine - 1);
  while (line < end) {
    const uintptr_t next_page = page_of(line) + kPage;
    Page* page = find(page_of(line));
    if (page != nullptr) {
      begin_sync(page);
      uint64_t needless = 0;
      for (; line < end && line - page->address < kPage; line += kLine) {
        if (!sync_line(static_cast<size_t>(page - pages_), line, invalidate)) {
          needless |= uint64_t{1} << (line % kPage / kLine);
        }
      }
      end_sync(page);
      note_needless(page->address, needless);
    }
    if (next_page == 0) return;
    line = next_page;
  }
}

void Shadow::clean(uintptr_t address, size_t length) {
  sync(address, length, false);
}

void Shadow::clean_invalidate(uintptr_t address, size_t length) {
  sync(address, length, true);
}

ShadowReport Shadow::report() {
  const Guard guard(*this);
  return report_;
}

}  // namespace dapple::provider
