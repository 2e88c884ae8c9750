// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Everything outside of the protocol that connection management needs: its host sends datagrams, gives random numbers
// and takes events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "roce/cm/ip_service.hpp"
#include "roce/cm/mad.hpp"

namespace dapple::roce::cm {

// A connection, a SIDR exchange or a listener. An id is reused only after 2^32 others.
using Id = uint64_t;
inline constexpr Id kNoId = 0;

// The addresses between which datagrams travel. A datagram is answered on its own path.
struct Path {
  uint32_t device = 0;   // the host's number for it
  uint64_t ca_guid = 0;  // the device's own GUID, unique for each device and network namespace
  Gid local{};
  Gid remote{};
  uint16_t pkey = 0xFFFF;
  uint8_t traffic_class = 0;

  bool operator==(const Path&) const = default;
};

enum class EventType : uint8_t {
  kConnectRequest,  // a REQ for a listener; the consumer accepts, rejects or destroys the new id
  kResponse,        // a REP; the consumer establishes, rejects or destroys
  kEstablished,     // the passive side's connection: an RTU has come, or the consumer has seen its first packet
  kRejected,        // a REJ, with its reason, info and private data
  kUnreachable,     // no answer to a REQ, REP or SIDR REQ after all retries
  kDisconnected,    // the connection is over, by the peer or by disconnect(); it may come right after kResponse
  kTimewaitExit,    // the queue pair's number may be used again
  kSidrRequest,     // a SIDR REQ for a listener; the consumer answers or destroys the new id
  kSidrReply,
};

// Valid, with all that it points to, during Host::event().
struct Event {
  EventType type{};
  // No event follows for this id, which belongs to the consumer until destroy(). An id that its own consumer ends, by
  // reject(), answer() or destroy(), gets no such event.
  bool last = false;
  Id id = kNoId;
  uint64_t user = 0;  // the consumer's value for this id; until it sets one, for the listener
  Id listener = kNoId;
  const Path* path = nullptr;
  const Req* req = nullptr;
  const Rep* rep = nullptr;
  const SidrReq* sidr_req = nullptr;
  const SidrRep* sidr_rep = nullptr;
  // The header that a request to an IP service has.
  const IpHeader* ip = nullptr;
  RejectReason reason{};
  bool timed_out = false;  // kDisconnected: the peer has answered no DREQ
  std::span<const std::byte> info = {};
  // All that the message has room for, behind an IP header if there is one: REQ 92 or 56 bytes, REP 196, REJ 148, RTU
  // 224, DREQ 220, DREP 224, SIDR REQ 216 or 180, SIDR REP 136. Empty if no message caused the event.
  std::span<const std::byte> private_data = {};
};

// No call may call the manager back.
class Host {
 public:
  // A Send Only from QP 1 to QP 1, with kGsiQkey. It may get lost.
  virtual void send(const Path& path, const Mad& mad) = 0;
  virtual uint64_t random() = 0;
  virtual void event(const Event& event) = 0;

 protected:
  ~Host() = default;
};

}  // namespace dapple::roce::cm
