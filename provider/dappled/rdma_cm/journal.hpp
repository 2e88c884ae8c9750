// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The journal of a channel: the state of its ids, which the next dappled needs when this one is killed.
#pragma once

#include <cstddef>
#include <type_traits>

#include "provider/dappled/rdma_cm/ids/id.hpp"
#include "provider/protocol/cm_messages.hpp"
#include "roce/cm/saved.hpp"

namespace dapple::dappled::rdma_cm {

inline constexpr size_t kJournalEntrySize = 576;
// The mark changes with the layout.
inline constexpr uint64_t kJournalMark = 0x35'4A'4D'43'41'4D'44'52;

struct SavedMembership {
  uint64_t uid = 0;
  uint32_t number = 0;
  uint32_t events_reported = 0;
  uint32_t token = 0;
  Gid group{};
  uint16_t family = 0;
  uint8_t unread = 0;
};

struct JournalEntry {
  static constexpr uint32_t kMaxMemberships = 4;  // further ones are forgotten

  uint64_t mark = 0;  // 0: the end
  IdState id;
  cm::Saved connection;
  uint32_t membership_count = 0;
  SavedMembership memberships[kMaxMemberships];
};

static_assert(sizeof(JournalEntry) <= kJournalEntrySize && std::is_trivially_copyable_v<JournalEntry>);

}  // namespace dapple::dappled::rdma_cm
