// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// CREATE_ID, DESTROY_ID, MIGRATE_ID, and the end of a channel.
#include <infiniband/verbs.h>

#include <new>
#include <utility>

#include "provider/dappled/rdma_cm/command.hpp"

namespace dapple::dappled::rdma_cm {

Channel::~Channel() {
  delete[] journaled;
}

bool IdState::is_datagram() const {
  return qp_type == IBV_QPT_UD;
}

int Service::create_id(Call& call) {
  rdma_ucm_create_id command;
  if (!read(call, command)) return refuse_malformed();
  if (call.room < sizeof(rdma_ucm_create_id_resp)) return refuse_room();
  uint8_t qp_type = 0;
  switch (command.ps) {
    case RDMA_PS_TCP:
      qp_type = IBV_QPT_RC;
      break;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
      qp_type = IBV_QPT_UD;
      break;
    case RDMA_PS_IB:
      qp_type = command.qp_type;
      break;
    default:
      return refuse(EINVAL,
                    "the port space 0x%x is unknown.\nTake RDMA_PS_TCP for connections, RDMA_PS_UDP for datagrams, "
                    "or RDMA_PS_IB.",
                    command.ps);
  }
  if (may_be_repeated(call)) {
    for (const CmId* made = call.channel.ids.first(); made != nullptr; made = made->newer) {
      if (made->last_token == call.token) return write(call, rdma_ucm_create_id_resp{made->number});
    }
  }
  CmId* id = add_id(call.channel, command.ps, qp_type);
  if (id == nullptr) {
    return refuse(ENOMEM, "dappled has %u ids of all programs, and no room for more.\nDestroy ids, or end programs.",
                  ids_.size());
  }
  id->uid = command.uid;
  id->last_token = call.token;
  note(*id);
  return write(call, rdma_ucm_create_id_resp{id->number});
}

CmId* Service::add_id(Channel& channel, uint16_t port_space, uint8_t qp_type) {
  CmId* id = new (std::nothrow) CmId;
  if (id == nullptr) return nullptr;
  id->number = ids_.unused();
  id->channel = &channel;
  if (!ids_.add(*id)) {
    delete id;
    return nullptr;
  }
  id->port_space = port_space;
  id->qp_type = qp_type;
  id->psn = static_cast<uint32_t>(world_.random()) & 0xFFFFFF;
  channel.ids.add(*id);
  return id;
}

uint32_t Service::destroy(Time now, CmId& id, Removed& removed) {
  Channel& channel = *id.channel;
  while (Membership* membership = id.memberships.first()) removed.bytes += leave(*membership).bytes;
  for (Event* event = channel.events.first(); event != nullptr;) {
    Event* next = event->newer;
    if (event->id == &id || event->request == &id) {
      // A request that no program knows yet has no other event. At the end of a channel it may end before its listener.
      CmId* request = std::exchange(event->request, nullptr);
      if (request != nullptr && request != &id) destroy(now, *request, removed);
      removed.count(*event);
      drop(channel, *event);
    }
    event = next;
  }
  if (id.connection != cm::kNoId) manager_->destroy(now, id.connection);
  resolving_.cancel(id);
  forget(id);
  ports_.release(id);
  ids_.remove(id);
  channel.ids.remove(id);
  assert(!id.changed && id.journal_index == CmId::kNowhere && id.timer_at == 0 && id.has_port == 0);
  const uint32_t reported = id.events_reported;
  delete &id;
  return reported;
}

int Service::destroy_id(Call& call) {
  rdma_ucm_destroy_id command;
  if (!read(call, command)) return refuse_malformed();
  if (call.room < sizeof(rdma_ucm_destroy_id_resp)) return refuse_room();
  CmId* id = nullptr;
  if (const int error = find(call, command.id, id); error != 0) return error;
  return write(call, rdma_ucm_destroy_id_resp{destroy(call.now, *id, call.answer.removed)});
}

void Service::close(Time now, Channel& channel) {
  Removed removed;
  while (CmId* id = channel.ids.first()) destroy(now, *id, removed);
  rdma_cm::assert_consistent(channel);
  assert_consistent();
  assert(channel.events.size() == 0 && channel.journaled_count == 0);
}

void Service::move(CmId& id, Channel& channel) {
  assert(id.channel != &channel && ids_.find(channel, id.number) == nullptr);
  forget(id);
  id.channel->ids.remove(id);
  id.channel = &channel;
  channel.ids.add(id);
}

// Gives a new ticket to an event that moves to another channel.
void Service::renew_ticket(Event& event, uint32_t ticket) {
  if (event.ticket == 0) return;
  CmId& id = *event.id;
  for (uint8_t i = 0; i < id.unread_count; i++) {
    if (id.unread[i].ticket == event.ticket) id.unread[i].ticket = ticket;
  }
  event.ticket = ticket;
}

int Service::migrate_id(Call& call) {
  rdma_ucm_migrate_id command;
  if (!read(call, command)) return refuse_malformed();
  if (call.room < sizeof(rdma_ucm_migrate_resp)) return refuse_room();
  if (call.source == nullptr) {
    return refuse(EBADF, "the id's present event channel is closed.\nMigrate ids before their channel is destroyed.");
  }
  CmId* id = may_be_repeated(call) ? ids_.find(call.channel, command.id) : nullptr;
  if (id != nullptr && id->last_token == call.token) return write(call, rdma_ucm_migrate_resp{id->events_reported});
  if (const int error = look_up(*call.source, command.id, id); error != 0) return refuse_number(error, command.id);
  if (call.source != &call.channel) {
    if (ids_.find(call.channel, command.id) != nullptr) {
      return refuse(EEXIST, "the id belongs to that channel already.\nCall rdma_migrate_id() once.");
    }
    for (Event* event = call.source->events.first(); event != nullptr;) {
      Event* next = event->newer;
      if (event->id == id) {
        call.answer.removed.count(*event);
        remove(*call.source, *event);
        renew_ticket(*event, next_ticket(call.channel));
        append(call.channel, *event);
        if (event->request != nullptr) move(*event->request, call.channel);
      }
      event = next;
    }
    move(*id, call.channel);
    id->last_token = call.token;
    note(*id);
  }
  return write(call, rdma_ucm_migrate_resp{id->events_reported});
}

}  // namespace dapple::dappled::rdma_cm
