// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// JOIN_IP_MCAST and LEAVE_MCAST. The plug-in joins the group on the netdev when a queue pair is attached to it; here it
// gets its multicast GID and Q_Key only.
#include <infiniband/verbs.h>

#include <new>

#include "provider/dappled/rdma_cm/command.hpp"
#include "provider/dappled/rdma_cm/ids/attributes.hpp"
#include "provider/dappled/rdma_cm/ids/constants.hpp"
#include "provider/dappled/rdma_cm/ids/words.hpp"

namespace dapple::dappled::rdma_cm {
namespace {

constexpr uint32_t kMulticastQpn = 0xFFFFFF;

}  // namespace

int Service::join_ip_mcast(Call& call) {
  rdma_ucm_join_ip_mcast command;
  if (!read(call, command)) return refuse_malformed();
  if (call.room < sizeof(rdma_ucm_create_id_resp)) return refuse_room();
  Address group;
  if (!read_address(command.addr, group)) return refuse_family(command.addr);
  CmId* id = nullptr;
  if (const int error = find_with_device(call, command.id, id); error != 0) return error;
  if (may_be_repeated(call)) {
    for (const Membership* made = id->memberships.first(); made != nullptr; made = made->newer) {
      if (made->token == call.token) return write(call, rdma_ucm_create_id_resp{made->number});
    }
  }
  if (id->state != State::kBound && id->state != State::kAddressResolved) {
    return refuse(EINVAL, "the id %s.\nCall rdma_join_multicast() with an id that is bound or has resolved an address.",
                  words_of(id->state));
  }
  if (!id->is_datagram() || group.is_any()) {
    return refuse(EINVAL, "%s.\nJoin a multicast address with an id of RDMA_PS_UDP.",
                  group.is_any() ? "the wildcard address is no group" : "only ids for datagrams join groups");
  }
  if (call.channel.events.size() >= kMaxUnread) return refuse_unread();
  if (membership_count_ == kMaxMemberships) {
    return refuse(ENOMEM, "dappled keeps %u memberships of all programs at most.\nLeave groups, or end programs.",
                  kMaxMemberships);
  }
  Membership* membership = add_membership(*id, next_membership_, command.uid, group);
  if (membership == nullptr) return refuse(ENOMEM, "dappled has no memory.\nEnd other programs, or add memory.");
  next_membership_++;
  membership->token = call.token;
  if (id->qkey == 0) id->qkey = kUdpQkey;
  report_join(*membership);
  return write(call, rdma_ucm_create_id_resp{membership->number});
}

Membership* Service::add_membership(CmId& id, uint32_t number, uint64_t uid, const Address& group) {
  assert(id.is_datagram() && membership_count_ < kMaxMemberships);
  Membership* membership = new (std::nothrow) Membership;
  if (membership == nullptr) return nullptr;
  membership->number = number;
  membership->uid = uid;
  membership->id = &id;
  membership->group = group;
  id.memberships.add(*membership);
  membership_count_++;
  return membership;
}

void Service::report_join(Membership& membership) {
  CmId& id = *membership.id;
  Event* event = add_event(id, EventKind::kMulticastJoin);
  if (event == nullptr) return;
  event->membership = &membership;
  event->response.uid = membership.uid;
  event->response.id = membership.number;
  event->response.param.ud.qp_num = kMulticastQpn;
  event->response.param.ud.qkey = id.qkey;
  write_ah(id, world_.gid_index(id), membership.group.gid, event->response.param.ud.ah_attr);
}

Service::Removed Service::leave(Membership& membership) {
  CmId& id = *membership.id;
  Removed removed;
  for (Event* event = id.channel->events.first(); event != nullptr;) {
    Event* next = event->newer;
    if (event->membership == &membership) {
      removed.count(*event);
      drop(*id.channel, *event);
    }
    event = next;
  }
  note(id);
  id.memberships.remove(membership);
  assert(membership_count_ > 0);
  membership_count_--;
  delete &membership;
  return removed;
}

int Service::leave_mcast(Call& call) {
  rdma_ucm_destroy_id command;
  if (!read(call, command)) return refuse_malformed();
  if (call.room < sizeof(rdma_ucm_destroy_id_resp)) return refuse_room();
  for (CmId* id = call.channel.ids.first(); id != nullptr; id = id->newer) {
    for (Membership* membership = id->memberships.first(); membership != nullptr; membership = membership->newer) {
      if (membership->number != command.id) continue;
      const rdma_ucm_destroy_id_resp response{membership->events_reported};
      call.answer.removed = leave(*membership);
      return write(call, response);
    }
  }
  return refuse(ENOENT, "the program is no member of this group.\nLeave each group once.");
}

}  // namespace dapple::dappled::rdma_cm
