// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/dappled/rdma_cm/journal.hpp"

#include <string.h>

#include <algorithm>
#include <array>
#include <new>

#include "provider/dappled/rdma_cm/ids/id_state.hpp"
#include "provider/dappled/rdma_cm/service.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

constexpr uint32_t kFirstRoom = 16;

// False without memory: the id is not in the journal then.
bool make_room(Channel& channel) {
  assert(channel.journaled_count <= channel.journaled_room);
  if (channel.journaled_count < channel.journaled_room) return true;
  const uint32_t room = std::max(2 * channel.journaled_room, kFirstRoom);
  CmId** grown = new (std::nothrow) CmId*[room];
  if (grown == nullptr) return false;
  std::copy_n(channel.journaled, channel.journaled_count, grown);
  delete[] channel.journaled;
  channel.journaled = grown;
  channel.journaled_room = room;
  return true;
}

}  // namespace

void Service::note(CmId& id) {
  if (id.changed) return;
  id.changed = true;
  id.next_changed = changed_;
  changed_ = &id;
}

void Service::write_journals() {
  while (CmId* id = changed_) {
    changed_ = id->next_changed;
    id->changed = false;
    rdma_cm::assert_consistent(*id);
    if (!id->unheard) write(*id);
  }
}

void Service::write(CmId& id) {
  // The next dappled would ignore the entry.
  assert(is_possible(id) && !id.unheard);
  Channel& channel = *id.channel;
  if (id.journal_index == CmId::kNowhere) {
    if (!make_room(channel)) return;
    id.journal_index = channel.journaled_count++;
    channel.journaled[id.journal_index] = &id;
  }
  JournalEntry entry;
  entry.mark = kJournalMark;
  entry.id = id;
  // Unread requests end with this dappled and leave their places.
  if (id.state == State::kListen) entry.id.backlog = id.whole_backlog;
  if (id.state != State::kListen && !id.is_datagram()) manager_->save(id.connection, entry.connection);
  for (const Membership* membership = id.memberships.first();
       membership != nullptr && entry.membership_count < JournalEntry::kMaxMemberships;
       membership = membership->newer) {
    entry.memberships[entry.membership_count++] = {.uid = membership->uid,
                                                   .number = membership->number,
                                                   .events_reported = membership->events_reported,
                                                   .token = membership->token,
                                                   .group = membership->group.gid,
                                                   .family = membership->group.family,
                                                   .unread = membership->unread};
  }
  std::array<std::byte, kJournalEntrySize> bytes{};
  memcpy(bytes.data(), &entry, sizeof entry);
  world_.write_journal(channel, id.journal_index, bytes);
}

void Service::forget(CmId& id) {
  if (id.changed) {
    CmId** link = &changed_;
    while (*link != &id) {
      assert(*link != nullptr);
      link = &(*link)->next_changed;
    }
    *link = id.next_changed;
    id.changed = false;
  }
  if (id.journal_index == CmId::kNowhere) return;
  // The last entry moves to this place. A dappled that reads both copies ignores the second: it knows the number
  // already.
  Channel& channel = *id.channel;
  assert(id.journal_index < channel.journaled_count && channel.journaled[id.journal_index] == &id);
  const uint32_t last = --channel.journaled_count;
  if (CmId* moved = channel.journaled[last]; moved != &id) {
    channel.journaled[id.journal_index] = moved;
    moved->journal_index = id.journal_index;
    write(*moved);
  }
  id.journal_index = CmId::kNowhere;
  world_.write_journal(channel, last, std::array<std::byte, kJournalEntrySize>{});
}

}  // namespace dapple::dappled::rdma_cm
