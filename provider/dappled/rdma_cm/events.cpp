// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <new>

#include "provider/dappled/rdma_cm/command.hpp"

namespace dapple::dappled::rdma_cm {

Event* Service::add_event(CmId& id, EventKind kind, int status) {
  // As the kernel's ucma: nobody knows an id that has not been accepted.
  if (id.uid == 0) return nullptr;
  Event* event = new (std::nothrow) Event;
  if (event == nullptr) return nullptr;
  event->id = &id;
  event->response.uid = id.uid;
  event->response.id = id.number;
  event->response.event = static_cast<uint32_t>(kind);
  event->response.status = static_cast<uint32_t>(status);
  id.channel->events.add(*event);
  world_.wake(*id.channel);
  return event;
}

void Service::drop(Channel& channel, Event& event) {
  channel.events.remove(event);
  delete &event;
}

int Service::get_event(Call& call) {
  Event* event = call.channel.events.first();
  // Libraries from before ECE have no room for it.
  if (call.room < offsetof(rdma_ucm_event_resp, reserved)) return ENOSPC;
  if (event == nullptr) return EAGAIN;
  event->id->events_reported++;
  if (event->membership != nullptr) event->membership->events_reported++;
  if (event->request != nullptr) event->id->backlog++;
  const int error = write(call, event->response, 0);
  drop(call.channel, *event);
  return error;
}

}  // namespace dapple::dappled::rdma_cm
