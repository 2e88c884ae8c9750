// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The findings in a region.
#include <string.h>
#include <sys/uio.h>

#include <algorithm>

#include "provider/emulator/shadow/shadow.hpp"

namespace dapple::provider {
namespace {

using Chunk = ShadowPages::Chunk;
using Page = ShadowPages::Page;

constexpr size_t kLine = ShadowPages::kLine;

// The part of a line that belongs to a region.
struct LinePart {
  uintptr_t begin;
  size_t length;
};
LinePart part_of(const ShadowRegion& region, uintptr_t line) {
  const uintptr_t begin = std::max(line, region.address);
  const uintptr_t end = std::min(line + kLine, region.end());
  assert(end <= begin || end - begin <= kLine);
  return {begin, end > begin ? end - begin : 0};
}

}  // namespace

// Counts the lines of the region in one of its pages that the device has changed since the last sync.
void Shadow::look_at_unsynced(const ShadowRegion& region, uintptr_t page, uintptr_t physical, Tally* tally) {
  const Chunk* chunk = pages_.find(physical);
  assert(chunk != nullptr && chunk->memory != nullptr && ShadowPages::page_of(physical) == physical);
  for (uintptr_t line = page; line < page + kPage; line += kLine) {
    const LinePart part = part_of(region, line);
    if (part.length == 0) continue;
    const size_t offset = physical - chunk->address + (part.begin - page);
    if (memcmp(chunk->memory + offset, chunk->baseline + offset, part.length) != 0) tally->add(1, part.begin);
  }
}

// Reads the program's memory through the kernel, because the program may have unmapped it.
void Shadow::look_at_cpu_side(const ShadowRegion& region, ShadowFindings* findings) {
  region.for_each_page([&](uintptr_t at, uintptr_t physical) {
    alignas(kLine) unsigned char program[kPage];
    const Chunk* chunk = pages_.find(physical);
    const Page& page = chunk->pages[ShadowPages::index_in(*chunk, physical)];
    assert(page.regions > 0);
    const iovec to = {program, kPage};
    const iovec from = {reinterpret_cast<void*>(at), kPage};
    const bool look = region.peers_read && page.moved != UINT64_MAX &&
                      process_vm_readv(owner_, &to, 1, &from, 1, 0) == static_cast<ssize_t>(kPage);
    if (!look && page.needless == 0) return;
    for (size_t i = 0; i < kPage / kLine; ++i) {
      const uint64_t bit = uint64_t{1} << i;
      const LinePart part = part_of(region, at + i * kLine);
      if (part.length == 0) continue;
      if ((page.needless & bit) != 0) findings->needless.add(1, part.begin);
      if (!look || (page.moved & bit) != 0) continue;
      const size_t offset = physical - chunk->address + (part.begin - at);
      const unsigned char* agreed = chunk->baseline + offset;
      const unsigned char* device = chunk->memory + offset;
      if (memcmp(program + (part.begin - at), agreed, part.length) != 0 && memcmp(device, agreed, part.length) == 0) {
        findings->unclean.add(1, part.begin);
      }
    }
  });
}

ShadowFindings Shadow::look_at(const ShadowRegion& region) {
  ShadowFindings findings = {region.address, region.length, region.registered, {}, {}, region.lost_bytes, {}};
  region.for_each_page(
      [&](uintptr_t page, uintptr_t physical) { look_at_unsynced(region, page, physical, &findings.unsynced); });
  look_at_cpu_side(region, &findings);
  return findings;
}

void Shadow::tell(const ShadowFindings& findings) {
  if (findings.unsynced.count + findings.unclean.count + findings.lost_bytes.count + findings.needless.count == 0)
    return;
  tell_(findings);
}

std::optional<ShadowTotals> Shadow::tell_all(std::optional<int> patience_ms) {
  if (in_child()) return std::nullopt;
  const SignalSafeLock::Guard guard(lock_, patience_ms);
  if (!guard.is_in_time()) return std::nullopt;
  for (const ShadowRegion* region : regions_) {
    if (!region->is_registered) continue;
    open_pages(pages_of(region->address, region->length));
    tell(look_at(*region));
  }
  for (const ShadowRegion* region : removed_) {
    ShadowFindings findings = {
        region->address, region->length, region->registered, region->unsynced, {}, region->lost_bytes, {}};
    region->for_each_page([&](uintptr_t page, uintptr_t physical) {
      if (region->waits[region->index_of(page)]) look_at_unsynced(*region, page, physical, &findings.unsynced);
    });
    tell(findings);
  }
  return totals_;
}

}  // namespace dapple::provider
