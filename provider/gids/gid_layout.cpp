// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/gids/gid_layout.hpp"

#include <string.h>

#include <algorithm>
#include <cassert>

#include "provider/network/gid.hpp"

namespace dapple::gids {
namespace {

enum class Kind { kLinkLocal, kIpv4, kIpv6 };

Kind kind_of(const uint8_t gid[16]) {
  if (soft::is_ipv4(gid)) return Kind::kIpv4;
  return soft::is_link_local(gid) ? Kind::kLinkLocal : Kind::kIpv6;
}

bool same(const uint8_t one[16], const uint8_t other[16]) {
  return memcmp(one, other, 16) == 0;
}

bool has(const soft::DeviceInfo& device, const uint8_t gid[16]) {
  return std::any_of(device.gids, device.gids + soft::kMaxGids,
                     [gid](const soft::GidEntry& entry) { return entry.valid != 0 && same(entry.gid, gid); });
}

}  // namespace

void twin(soft::DeviceInfo& device) {
  soft::GidEntry own[soft::kMaxGids];
  std::copy_n(device.gids, soft::kMaxGids, own);
  for (uint32_t i = 0; i < soft::kMaxGids; i++) {
    device.gids[i] = own[i / 2];
    device.gids[i].type = i % 2 == 0 ? soft::GidType::kRoceV1 : soft::GidType::kRoceV2;
  }
}

void GidLayout::begin(const soft::DeviceInfo& device) {
  if (guid_ == device.guid) return;
  *this = {};
  guid_ = device.guid;
}

bool GidLayout::has_indexes(uint32_t base_index) const {
  return std::any_of(std::begin(entries_), std::end(entries_),
                     [base_index](const Entry& entry) { return entry.base_index == base_index; });
}

void GidLayout::drop(uint32_t base_index) {
  for (Entry& entry : entries_) {
    if (entry.base_index == base_index) entry = {};
  }
}

void GidLayout::take(uint32_t index, uint32_t base_index, soft::GidType type) {
  assert(index < soft::kMaxGids && entries_[index].base_index == kNone);
  entries_[index] = {static_cast<uint8_t>(base_index), type};
}

// False if other addresses have the indexes.
bool GidLayout::take_address(std::span<const PlanRow> rows, uint8_t address, const soft::GidEntry& entry) {
  for (const PlanRow& row : rows) {
    if (row.address == address && entries_[row.index].base_index != kNone) return false;
  }
  for (const PlanRow& row : rows) {
    if (row.address == address) take(row.index, entry.base_index, row.type);
  }
  return true;
}

bool GidLayout::take_own_address(std::span<const PlanRow> rows, const soft::GidEntry& entry) {
  return std::any_of(rows.begin(), rows.end(), [&](const PlanRow& row) {
    return same(row.gid, entry.gid) && take_address(rows, row.address, entry);
  });
}

bool GidLayout::take_address_of_kind(std::span<const PlanRow> rows, const soft::DeviceInfo& device,
                                     const soft::GidEntry& entry) {
  return std::any_of(rows.begin(), rows.end(), [&](const PlanRow& row) {
    return kind_of(row.gid) == kind_of(entry.gid) && !has(device, row.gid) && take_address(rows, row.address, entry);
  });
}

// With both types if the plan has both. Without room the address has no index.
void GidLayout::take_unnamed(std::span<const PlanRow> rows, const soft::GidEntry& entry) {
  const bool twins =
      std::any_of(rows.begin(), rows.end(), [](const PlanRow& row) { return row.type == soft::GidType::kRoceV1; });
  const uint32_t wanted = twins ? 2 : 1;
  uint32_t indexes[2];
  uint32_t found = 0;
  for (uint32_t i = 0; i < soft::kMaxGids && found < wanted; i++) {
    const bool named = std::any_of(rows.begin(), rows.end(), [i](const PlanRow& row) { return row.index == i; });
    if (!named && entries_[i].base_index == kNone) indexes[found++] = i;
  }
  if (found < wanted) return;
  if (twins) take(indexes[0], entry.base_index, soft::GidType::kRoceV1);
  take(indexes[wanted - 1], entry.base_index, soft::GidType::kRoceV2);
}

void GidLayout::show(std::span<const PlanRow> rows, uint64_t free, soft::DeviceInfo& device) {
  begin(device);
  soft::GidEntry own[soft::kMaxGids];
  std::copy_n(device.gids, soft::kMaxGids, own);
  for (uint32_t i = 0; i < soft::kMaxGids; i++) {
    const bool other = own[i].valid != 0 && !same(own[i].gid, gids_[i]);
    if (other || (free >> i & 1) != 0) drop(i);
    if (own[i].valid != 0) memcpy(gids_[i], own[i].gid, sizeof gids_[i]);
  }
  const auto each_new = [&](auto function) {
    for (const soft::GidEntry& entry : own) {
      if (entry.valid != 0 && !has_indexes(entry.base_index)) function(entry);
    }
  };
  each_new([&](const soft::GidEntry& entry) { take_own_address(rows, entry); });
  each_new([&](const soft::GidEntry& entry) { take_address_of_kind(rows, device, entry); });
  each_new([&](const soft::GidEntry& entry) { take_unnamed(rows, entry); });
  for (uint32_t i = 0; i < soft::kMaxGids; i++) {
    soft::GidEntry& shown = device.gids[i];
    shown = {};
    if (entries_[i].base_index == kNone) continue;
    shown = own[entries_[i].base_index];
    shown.type = entries_[i].type;
  }
  assert_consistent();
}

void GidLayout::restore(const soft::AnnounceGidsRequest& known, const soft::DeviceInfo& device) {
  begin(device);
  if (known.generation <= restored_) return;
  restored_ = known.generation;
  std::fill(std::begin(entries_), std::end(entries_), Entry{});
  for (uint32_t i = 0; i < soft::kMaxGids; i++) {
    const soft::GidEntry& entry = known.gids[i];
    // The announcement comes from another process.
    if (entry.valid == 0 || entry.base_index >= soft::kMaxGids) continue;
    const soft::GidEntry& own = device.gids[entry.base_index];
    if (own.valid == 0 || !same(own.gid, entry.gid)) continue;
    const bool v1 = entry.type == soft::GidType::kRoceV1;
    take(i, entry.base_index, v1 ? soft::GidType::kRoceV1 : soft::GidType::kRoceV2);
    memcpy(gids_[entry.base_index], own.gid, sizeof own.gid);
  }
  assert_consistent();
}

void GidLayout::assert_consistent() const {
  assert(guid_ != 0);
  for ([[maybe_unused]] const Entry& entry : entries_) {
    assert(entry.base_index == kNone || entry.base_index < soft::kMaxGids);
    assert(entry.type == soft::GidType::kRoceV1 || entry.type == soft::GidType::kRoceV2);
  }
}

}  // namespace dapple::gids
