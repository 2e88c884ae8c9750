// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <new>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/protocol/cm_commands.hpp"

namespace dapple::dappled::rdma_cm {

namespace {

// The limit of unread events that are sent in messages. More of them would fill the socket.
constexpr uint32_t kMaxHanded = 16;

// False for events whose id the next dappled would not know, for events of a group, and for those of a program.
bool is_plain(EventKind kind) {
  return kind != EventKind::kConnectRequest && kind != EventKind::kMulticastJoin && !is_written(kind);
}

}  // namespace

Event* Service::add_event(CmId& id, EventKind kind, int status) {
  // As in the kernel's ucma: no program knows an id that has not been accepted.
  if (id.uid == 0) return nullptr;
  Event* event = new (std::nothrow) Event;
  if (event == nullptr) return nullptr;
  event->id = &id;
  event->response.uid = id.uid;
  event->response.id = id.number;
  event->response.event = static_cast<uint32_t>(kind);
  event->response.status = static_cast<uint32_t>(status);
  if (is_plain(kind) && id.unread_count < IdState::kMaxUnread) {
    event->ticket = next_ticket(*id.channel);
    id.unread[id.unread_count++] = {static_cast<uint8_t>(kind), static_cast<int16_t>(status), event->ticket};
    note(id);
  }
  append(*id.channel, *event);
  return event;
}

void Service::append(Channel& channel, Event& event) {
  assert(event.id != nullptr);
  event.sent = false;
  channel.events.add(event);
  channel.unsent++;
  world_.wake(channel);
}

uint32_t Service::next_ticket(Channel& channel) {
  if (!channel.hands_events || channel.events.size() >= kMaxHanded) return 0;
  if (++channel.last_ticket == 0) ++channel.last_ticket;
  return channel.last_ticket;
}

void Service::take(Channel& channel, uint32_t ticket) {
  if (ticket == channel.taken) return;
  channel.taken = ticket;
  Event* event = channel.events.first();
  // An event with a ticket had fewer than kMaxHanded events before it.
  for (uint32_t i = 0; event != nullptr && i < kMaxHanded; i++) {
    Event* next = event->newer;
    if (event->ticket != 0 && event->sent && is_taken(event->ticket, ticket)) {
      event->id->events_reported++;
      note(*event->id);
      drop(channel, *event);
    }
    event = next;
  }
}

void Service::drop(Channel& channel, Event& event) {
  CmId& id = *event.id;
  assert(id.channel == &channel);
  [[maybe_unused]] const uint8_t before = id.unread_count;
  for (uint8_t i = 0; i < id.unread_count; i++) {
    if (id.unread[i].kind != event.response.event || id.unread[i].ticket != event.ticket) continue;
    std::copy(id.unread + i + 1, id.unread + id.unread_count, id.unread + i);
    id.unread_count--;
    break;
  }
  // The journal would hand the event out again.
  assert(event.ticket == 0 || id.unread_count + 1 == before);
  remove(channel, event);
  delete &event;
}

void Service::remove(Channel& channel, Event& event) {
  channel.events.remove(event);
  assert(event.sent || channel.unsent > 0);
  if (!event.sent) channel.unsent--;
  assert(channel.unsent <= channel.events.size());
}

// librdmacm writes kInternal at the end of rdma_resolve_addrinfo().
int Service::write_cm_event(Call& call) {
  soft::CmWriteEventCommand command;
  if (!read(call, command)) return refuse_malformed();
  const auto kind = static_cast<EventKind>(command.event);
  if (!is_written(kind)) {
    return refuse(EINVAL, "programs cannot write the event %u.\nWrite RDMA_CM_EVENT_USER.", command.event);
  }
  CmId* id = nullptr;
  if (const int error = find(call, command.id, id); error != 0) return error;
  if (call.channel.events.size() >= kMaxUnread) return refuse_unread();
  Event* event = add_event(*id, kind, static_cast<int>(command.status));
  if (event == nullptr) return refuse(ENOMEM, "dappled has no memory for the event.\nRead events, and end ids.");
  memcpy(&event->response.param, &command.argument, sizeof command.argument);
  return 0;
}

int Service::get_event(Call& call) {
  Event* event = call.channel.events.first();
  while (event != nullptr && event->ticket != 0) event = event->newer;
  // Libraries older than ECE have no room for its fields.
  if (call.room < offsetof(rdma_ucm_event_resp, reserved)) return refuse_room();
  if (int error = 0; may_be_repeated(call) && hand_again(call, error)) return error;
  if (event == nullptr) return EAGAIN;  // no refusal: the program waits for the next one
  CmId& id = *event->id;
  id.events_reported++;
  id.handed_token = call.token;
  id.handed_number = event->response.id;
  id.handed = {static_cast<uint8_t>(event->response.event), static_cast<int16_t>(event->response.status)};
  note(id);
  if (event->membership != nullptr) {
    assert(event->membership->unread && event->membership->id == &id);
    event->membership->events_reported++;
    event->membership->unread = false;
  }
  if (event->request != nullptr) {
    assert(event->request->unheard && event->request->channel == &call.channel);
    id.backlog++;
    event->request->unheard = false;
    note(*event->request);
  }
  const int error = write(call, event->response, 0);
  if (asks_next(static_cast<EventKind>(event->response.event))) call.answer.ahead = event->response.id;
  drop(call.channel, *event);
  return error;
}

}  // namespace dapple::dappled::rdma_cm
