// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/requests/peers_end.hpp"

#include "provider/network/address_text.hpp"
#include "provider/network/gid.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/check/reports/report.hpp"
#include "provider/soft/refusals/attribute_names.hpp"
#include "roce/send_queue/send_queue.hpp"

namespace dapple::soft::explain {
namespace {

using check::format;
using check::number;

struct Right {
  uint32_t bit;
  const char* name;
};

// The right that the request needs; its bit is 0 if it needs none.
Right right_of(roce::SendOpcode opcode) {
  if (roce::kWrites.has(opcode)) return {IBV_ACCESS_REMOTE_WRITE, "IBV_ACCESS_REMOTE_WRITE"};
  switch (opcode) {
    case roce::SendOpcode::kRead:
      return {IBV_ACCESS_REMOTE_READ, "IBV_ACCESS_REMOTE_READ"};
    case roce::SendOpcode::kCompareSwap:
    case roce::SendOpcode::kFetchAdd:
      return {IBV_ACCESS_REMOTE_ATOMIC, "IBV_ACCESS_REMOTE_ATOMIC"};
    default:
      return {0, ""};
  }
}

constexpr char kCompareMtus[] = "Set the same path_mtu at both ends: the smaller active_mtu of their ports.";
constexpr char kComparePsns[] = "Set rq_psn of each end to sq_psn of the other; PSNs have 24 bits.";

// What the packets of a peer on another host show of its silence.
Reason why_distant_peer_is_silent(const Failure& failure) {
  const PeersPackets& packets = failure.packets;
  if (packets.answers)
    return {"it has answered earlier packets",
            "See whether the peer's program lives and its queue pair is in no error, and whether the network loses "
            "packets: dapple-info --ping."};
  if (packets.expected_psn)
    return {format("it expects PSN 0x%x, and the sq_psn of this queue pair is 0x%x", *packets.expected_psn,
                   packets.first_psn),
            kComparePsns};
  if (packets.any)
    return {"packets of it come, but no acknowledgement",
            "Compare dest_qp_num with the qp_num of the peer's queue pair, and its byte order."};
  if (packets.stranger)
    return {format("packets for this queue pair come from %s", AddressText(packets.stranger->data()).c_str()),
            "Set grh.dgid of each end to the GID at the other's sgid_index."};
  if (is_loopback(failure.own))
    return {format("no packet of it has come, and the GID of this queue pair, %s, is a loopback address, which another "
                   "host cannot reach",
                   AddressText(failure.own).c_str()),
            "Use a device and a GID that the peer's host reaches: dapple-info lists the devices and their network "
            "interfaces."};
  if (failure.hop_limit == 1)
    return {"no packet of it has come, and grh.hop_limit of this queue pair is 1, so that a router drops its packets",
            "Set grh.hop_limit to 64 at both ends, unless no router is between them."};
  return {"no packet of it has come",
          format("See whether the peer's queue pair is in IBV_QPS_RTR, has 0x%x as dest_qp_num, this end's sq_psn as "
                 "rq_psn and this end's GID as grh.dgid, and whether UDP port 4791 is open there and here: dapple-info "
                 "--ping.",
                 failure.qpn)};
}

}  // namespace

bool is_of_this_host(const Failure& failure) {
  return failure.same_host || failure.context->has_gid(failure.peer);
}

bool has_peers_end(const Failure& failure) {
  return is_of_this_host(failure) && slot_of(failure.attributes.destination_qpn) == slot_of(failure.qpn);
}

Reason why_peer_is_silent(const Failure& failure) {
  if (!is_of_this_host(failure)) return why_distant_peer_is_silent(failure);
  const uint32_t peers_qpn = failure.attributes.destination_qpn;
  ResourceRow own, peer;
  const Context::Found found = failure.context->find_qp(peers_qpn, peer);
  if (found == Context::Found::kMaybe) return {};
  if (found == Context::Found::kNo) {
    return {
        format("no program of this host has a queue pair 0x%x on this device: it never existed, or is destroyed",
               peers_qpn),
        "Compare dest_qp_num with the peer's qp_num and its byte order, and keep the peer's queue pair until all is "
        "sent."};
  }
  if (peer.state < IBV_QPS_RTR || peer.state == IBV_QPS_ERR) {
    return {format("the peer's queue pair is in %s", state_name(static_cast<int>(peer.state))),
            peer.state == IBV_QPS_ERR ? "Find out why the peer's queue pair is in an error: look at its completions."
                                      : "Change the peer's queue pair to IBV_QPS_RTR before this one sends."};
  }
  if (peer.remote_qpn != failure.qpn) {
    return {format("the peer's dest_qp_num is 0x%x, and this is queue pair 0x%x", peer.remote_qpn, failure.qpn),
            "Let both ends exchange their qp_num, and set dest_qp_num to the other's."};
  }
  if (failure.context->find_qp(failure.qpn, own) != Context::Found::kYes) return {};
  if (own.send_psn != peer.receive_psn) {
    return {format("this queue pair's sq_psn is 0x%x, and the peer's rq_psn is 0x%x", own.send_psn, peer.receive_psn),
            kComparePsns};
  }
  if (own.receive_psn != peer.send_psn) {
    return {format("this queue pair's rq_psn is 0x%x, and the peer's sq_psn is 0x%x", own.receive_psn, peer.send_psn),
            kComparePsns};
  }
  return {};
}

Reason why_answer_is_bad(const Failure& failure) {
  ResourceRow peer;
  const bool is_shown = is_of_this_host(failure) &&
                        failure.context->find_qp(failure.attributes.destination_qpn, peer) == Context::Found::kYes;
  const uint32_t peers_mtu = is_shown ? 256 * peer.path_mtu : failure.packets.path_mtu;
  if (peers_mtu == 0 || peers_mtu == failure.attributes.path_mtu) return {};
  return {format("its packets have %u bytes, and path_mtu of this queue pair is %u", peers_mtu,
                 failure.attributes.path_mtu),
          kCompareMtus};
}

Reason why_peer_refuses(const Failure& failure) {
  ResourceRow peer;
  if (!is_of_this_host(failure)) return why_answer_is_bad(failure);
  if (failure.context->find_qp(failure.attributes.destination_qpn, peer) != Context::Found::kYes) return {};
  const Right right = right_of(failure.opcode);
  if ((right.bit & ~peer.peers_access) != 0) {
    return {
        format("its qp_access_flags lack %s", right.name),
        format("Set %s in qp_access_flags when the peer's queue pair changes to IBV_QPS_INIT, or later.", right.name)};
  }
  if (roce::wants_response(failure.opcode) && peer.max_dest_rd_atomic < failure.attributes.max_rd_atomic) {
    return {format("its max_dest_rd_atomic is %u, and max_rd_atomic here is %u", peer.max_dest_rd_atomic,
                   failure.attributes.max_rd_atomic),
            "Set max_rd_atomic of each end to at most max_dest_rd_atomic of the other."};
  }
  const uint32_t peers_mtu = 256 * peer.path_mtu;
  if (peers_mtu != failure.attributes.path_mtu) {
    return {format("its path_mtu is %u, and that of this queue pair is %u", peers_mtu, failure.attributes.path_mtu),
            kCompareMtus};
  }
  if (roce::kSends.has(failure.opcode) && failure.type == IBV_QPT_RC) {
    return {format("its receive is shorter than %llu bytes", number(failure.length)),
            "Post receives that are as long as the longest message."};
  }
  return {};
}

}  // namespace dapple::soft::explain
