// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/emulator/shadow.hpp"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

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

size_t count_differences(const unsigned char* a, const unsigned char* b, size_t* first) {
  size_t count = 0;
  for (size_t i = 0; i < Shadow::kLine; ++i) {
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
    if (memcmp(memory(index) + offset, baseline(index) + offset, kLine) == 0) continue;
    if (count == 0) *first = line < region.address ? region.address : line;
    ++count;
  }
  return count;
}

void Shadow::sync_line(size_t index, uintptr_t line, bool invalidate) {
  auto* program = reinterpret_cast<unsigned char*>(line);
  unsigned char* device = memory(index) + line % kPage;
  unsigned char* agreed = baseline(index) + line % kPage;
  const bool dirty = memcmp(program, agreed, kLine) != 0;
  size_t first = 0;
  const size_t changed = count_differences(device, agreed, &first);
  if (dirty) {
    // The whole line goes to memory, over whatever the device has put into it.
    if (changed > 0) {
      if (report_.lost_bytes == 0) report_.first_lost = line + first;
      report_.lost_bytes += changed;
    }
    memcpy(agreed, program, kLine);
    memcpy(device, program, kLine);
  } else if (changed > 0 && invalidate) {
    memcpy(agreed, device, kLine);
    memcpy(program, agreed, kLine);
  } else {
    ++report_.needless_syncs;
    return;
  }
  ++report_.moved_lines;
}

void Shadow::sync(uintptr_t address, size_t length, bool invalidate) {
  if (length == 0 || in_child()) return;
  const Guard guard(*this);
  const uintptr_t end = address + length < address ? UINTPTR_MAX : address + length;
  uintptr_t line = address & ~(kLine - 1);
  while (line < end) {
    const uintptr_t next_page = page_of(line) + kPage;
    Page* page = find(page_of(line));
    if (page != nullptr) begin_sync(page);
    for (; page != nullptr && line < end && line < next_page; line += kLine) {
      sync_line(static_cast<size_t>(page - pages_), line, invalidate);
    }
    if (page != nullptr) end_sync(page);
    if (next_page == 0) return;
    if (page == nullptr) line = next_page;
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
