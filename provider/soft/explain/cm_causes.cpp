// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/cm_causes.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "provider/network/address_text.hpp"
#include "provider/network/gid.hpp"
#include "provider/soft/explain/refused_calls.hpp"
#include "roce/cm/mad.hpp"

namespace dapple::soft::explain {
namespace {

using check::Level;
using roce::cm::RejectReason;
using roce::cm::SidrStatus;

std::string words_of(const sockaddr_in6& address) {
  uint8_t gid[16];
  if (address.sin6_family == AF_INET) {
    ipv4_gid(&reinterpret_cast<const sockaddr_in&>(address).sin_addr, gid);
  } else if (address.sin6_family == AF_INET6) {
    memcpy(gid, &address.sin6_addr, sizeof gid);
  } else {
    return "an unknown address";
  }
  // Both families have the port at the same place.
  return AddressText(gid, ntohs(address.sin6_port)).c_str();
}

Cause cause_of_rejection(int status, const std::string& peer) {
  switch (static_cast<RejectReason>(status)) {
    case RejectReason::kInvalidServiceId:
      return {"nobody listens at " + peer + " (IBTA reason 8, invalid service ID).",
              "Start the server first, and compare address, port and port space (RDMA_PS_TCP) with its rdma_listen()."};
    case RejectReason::kConsumer:
      return {
          "the program at " + peer + " called rdma_reject(), destroyed the request's id, or ended (IBTA reason 28).",
          "Look at the server: it decides this, and its private data may say why. Its backlog may be full, too.",
          Level::kNote};
    case RejectReason::kStaleConnection:
      return {"the peer at " + peer + " still has an older connection of this queue pair's number (IBTA reason 10).",
              "Disconnect before a queue pair is destroyed, and try again."};
    case RejectReason::kNoResources:
      return {"the peer at " + peer + " has no room for another connection (IBTA reason 3).",
              "End connections there, or raise the limits."};
    case RejectReason::kTimeout:
      return {"the peer at " + peer + " waited too long for an answer of this program (IBTA reason 4).",
              "Read the event RDMA_CM_EVENT_CONNECT_RESPONSE, or call rdma_establish(), without delay."};
    case RejectReason::kInvalidTransport:
      return {"the server at " + peer + " listens for another kind of queue pair (IBTA reason 9).",
              "Give both ends the same port space and type of queue pair."};
    default:
      return {"the peer at " + peer + " rejects it with the IBTA reason " + std::to_string(status) + ".",
              "Look at the peer: its connection management decides this."};
  }
}

Cause cause_of_silence(int status, const std::string& peer) {
  if (status == -ECONNRESET) {
    return {"dappled, which keeps the connection with " + peer + ", ended during the handshake.", "Connect again."};
  }
  if (status == -ETIMEDOUT) {
    return {"the host of " + peer + " did not answer.",
            "See by `dapple-info --ping ADDRESS` whether it has an RDMA device, and whether UDP port 4791 passes the "
            "firewalls."};
  }
  if (status == static_cast<int>(SidrStatus::kUnsupported)) {
    return {"nobody listens for datagrams at " + peer + ".",
            "Start the server first, and compare address, port and port space (RDMA_PS_UDP) with its rdma_listen()."};
  }
  return {"the program at " + peer + " refuses (SIDR status " + std::to_string(status) + ").",
          "Look at the server: it decides this."};
}

Cause cause_of_address(int status, const std::string& peer) {
  switch (-status) {
    case ENODEV:
      return {"the way to " + peer + " goes through a network device that has no RDMA device for this program.",
              "Compare `ip route get ADDRESS` with the network devices that `dapple-info` shows."};
    case ETIMEDOUT:
      return {"no host answered the question for the link-layer address on the way to " + peer +
                  " (ARP, or IPv6 "
                  "neighbour discovery) in the time that rdma_resolve_addr() got.",
              "See by ping whether the host is there, or give rdma_resolve_addr() more milliseconds."};
    case EINVAL:
      return {"the peer at " + peer + " has another Q_Key than this id.", "Give both ends the same Q_Key."};
    default:
      return {"the kernel finds no way to " + peer + " (" + error_words(-status) + ").",
              "Compare the address with `ip route get`, in this network namespace."};
  }
}

}  // namespace

Cause cause_of(const CmFailure& failure) {
  const std::string peer = words_of(failure.destination);
  switch (failure.event) {
    case RDMA_CM_EVENT_REJECTED:
      return cause_of_rejection(failure.status, peer);
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return cause_of_silence(failure.status, peer);
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return {"the device of the id bound to " + words_of(failure.source) + " has gone, with its network device.",
              "Destroy the id, and make another one for a present device."};
    default:
      return cause_of_address(failure.status, peer);
  }
}

const char* name_of_failure(uint32_t event) {
  switch (event) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return "RDMA_CM_EVENT_ADDR_ERROR";
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return "RDMA_CM_EVENT_ROUTE_ERROR";
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return "RDMA_CM_EVENT_CONNECT_ERROR";
    case RDMA_CM_EVENT_UNREACHABLE:
      return "RDMA_CM_EVENT_UNREACHABLE";
    case RDMA_CM_EVENT_REJECTED:
      return "RDMA_CM_EVENT_REJECTED";
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return "RDMA_CM_EVENT_DEVICE_REMOVAL";
    case RDMA_CM_EVENT_MULTICAST_ERROR:
      return "RDMA_CM_EVENT_MULTICAST_ERROR";
    default:
      return nullptr;
  }
}

}  // namespace dapple::soft::explain
