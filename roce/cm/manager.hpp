// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// InfiniBand connection management (IBTA 12) for many connections, as the kernel's ib_cm and rdma_cm do it: datagrams
// and the time go in, datagrams and events come out at the host. Confined to one thread. It only allocates room for
// more records, up to its limits. Everything that strangers send is bounded and counted.
//
// The active side:  connect → kResponse → establish → … → kDisconnected → kTimewaitExit → destroy
// The passive side: listen → kConnectRequest → accept → kEstablished → … → kDisconnected → kTimewaitExit → destroy
// Datagrams:        resolve → kSidrReply → destroy;  listen → kSidrRequest → answer → destroy
//
// An id is the consumer's until destroy(), which works in every state and tells the peer. No event follows after it.
// The manager continues for a while on its own, so that the peer learns of the end even if datagrams get lost.
#pragma once

#include <memory>
#include <span>

#include "roce/cm/listeners.hpp"
#include "roce/cm/ports.hpp"
#include "roce/cm/record_list.hpp"
#include "roce/cm/saved.hpp"
#include "roce/cm/table.hpp"

namespace dapple::roce::cm {

struct Limits {
  uint32_t records = 16384;      // connections and SIDR exchanges, including those that their consumer has destroyed
  uint32_t pending = 4096;       // of these, requests that wait for the consumer; a further request is not answered
  uint32_t pending_each = 1536;  // of the pending ones, those of one listener: a slow consumer leaves room for others
  // Of the records, passive connections that were accepted and that their peer has not confirmed, and those of one
  // listener. An old one gives way.
  uint32_t unconfirmed = 4096;
  uint32_t unconfirmed_each = 1024;
  uint32_t remembered = 4096;  // of the records, destroyed ones; the oldest gives way
  uint32_t listeners = 4096;
};

struct Counters {
  uint64_t received = 0;
  uint64_t sent = 0;
  uint64_t resent = 0;       // by time-out
  uint64_t timed_out = 0;    // exchanges given up
  uint64_t established = 0;  // connections, restored ones included
  uint64_t malformed = 0;    // no datagram of connection management: size, version, class, method, attribute
  uint64_t unsupported = 0;  // alternate paths
  uint64_t duplicates = 0;   // answered again or ignored
  uint64_t unexpected = 0;   // not in this state
  uint64_t unknown = 0;      // for an id that is not here
  uint64_t foreign = 0;      // for an id of another peer
  uint64_t stale = 0;        // a queue pair or id of the peer's that is connected already
  uint64_t unserved = 0;     // no listener, or none for this kind of request
  uint64_t over_backlog = 0;
  uint64_t over_limit = 0;
  uint64_t evicted = 0;    // unconfirmed ones that gave way
  uint64_t forgotten = 0;  // destroyed ones that gave way
};

enum class Status : uint8_t {
  kOk,
  kNoSuchId,
  kWrongState,
  kNoRoom,   // the limit is reached, or there is no memory
  kInUse,    // there is already a listener
  kTooLong,  // private data
  kUnsupported,
};

using Data = std::span<const std::byte>;

class Manager {
 public:
  // nullptr if there is no memory.
  static std::unique_ptr<Manager> create(const Limits& limits, Host& host);

  // A datagram for QP 1 with kGsiQkey: the UD payload. `path.remote` has sent it. Every byte may be hostile.
  void receive(Time now, const Path& path, std::span<const std::byte> mad);
  // The time at which advance() has work to do; kNever if nothing waits.
  Time deadline() const;
  void advance(Time now);

  Status listen(const ListenParameters& parameters, Id& id);

  // Sends a REQ. The manager writes comm_id and ca_guid of `req`. Time-outs, retries and the packets' lifetime
  // (ack_timeout) come from `req`.
  Status connect(Time now, uint64_t user, const Path& path, const Req& req, Id& id);
  // Answers kResponse with an RTU. The connection is then established; no event reports this.
  Status establish(Time now, Id id, Data private_data);

  // Answers kConnectRequest. The manager writes comm_id, remote_comm_id and ca_guid of `rep`. An older connection that
  // its peer has not confirmed may give way, and reports kUnreachable.
  Status accept(Time now, Id id, const Rep& rep);
  // Answers kConnectRequest or kResponse, or withdraws an accept().
  Status reject(Time now, Id id, RejectReason reason, Data info, Data private_data);
  // Asks the peer for patience, by an MRA, after kConnectRequest or kResponse: 4.096 µs * 2^service_timeout. Without it
  // the manager sends one when the peer repeats its message.
  Status prolong(Time now, Id id, uint8_t service_timeout);
  // Destroys the new id of kConnectRequest or kSidrRequest without an answer, as if the request had not come: the peer
  // asks again. It counts as one beyond the backlog.
  Status ignore(Id id);
  // The consumer has seen the connection's first packet, before the RTU.
  Status note_established(Time now, Id id);

  // Sends a DREQ. kDisconnected follows. Does nothing if the connection has already ended.
  Status disconnect(Time now, Id id, Data private_data);

  // Sends a SIDR REQ, again after 4.096 µs * 2^response_timeout. The manager writes request_id.
  Status resolve(Time now, uint64_t user, const Path& path, const SidrReq& request, uint8_t response_timeout,
                 uint8_t max_retries, Id& id);
  // Answers kSidrRequest. The manager writes request_id and service_id.
  Status answer(Time now, Id id, const SidrRep& reply);

  // Destroys a connection, an exchange or a listener. Requests that wait for a listener's consumer stay.
  Status destroy(Time now, Id id);

  // The value that the id's events carry from now on.
  Status set_user(Id id, uint64_t user);

  // A connection's record for the next manager. Save it again after each call or event that changes it.
  Status save(Id id, Saved& saved) const;
  // The connection continues in the state of the other manager, with another id. A handshake does not continue: the
  // consumer destroys it, which informs the peer. Every byte may be hostile.
  Status restore(Time now, uint64_t user, const Saved& saved, Id& id);

  // Until then, listeners and connections of an earlier manager may come. What is meant for one of these gets no
  // answer, so the peer asks again.
  void expect_others(Time until) { others_until_ = until; }

  // Tells whether this manager also has the other end of the connection. False if it does not, or that end is over.
  bool has_both_ends(Id id) const;

  const Counters& counters() const { return count_; }
  uint32_t records() const { return table_.size(); }
  uint32_t listeners() const { return listeners_.count(); }
  uint32_t pending() const { return pending_; }
  uint32_t unconfirmed() const { return unconfirmed_.size(); }
  // Made by a stranger's datagram, and not confirmed by its next one.
  uint32_t half_open() const { return pending_ + unconfirmed_.size(); }
  uint32_t remembered() const { return remembered_.size(); }
  // The records that wait for a DREP.
  uint32_t disconnecting() const { return disconnecting_; }

 private:
  Manager(const Limits& limits, Host& host) : limits_(limits), host_(host), listeners_(limits.listeners) {}

  // manager.cpp: common to all states.
  Record* add_record();
  Record* consumers(Id id) const;
  // The only function that changes the state of a record.
  void enter(Record& record, State state);
  void send(const Record& record, const Mad& mad);
  void send_first(Time now, Record& record, const Mad& mad);
  void expire(Time now, Record& record);
  void give_up(Time now, Record& record);
  void emit(const Record& record, Event event);
  void remember(Record& record);
  void finish(Record& record);
  void release(Record& record);
  bool is_foreign(const Record& record, const Path& path);
  Record* by_both_ids(const Path& path, uint32_t local_id, uint32_t remote_id);
  void take(Time now, const Path& path, const MadView& view);
  // Asserts the conditions that hold between two calls. The second one is the result of a public function that has
  // changed the record.
  void assert_consistent() const;
  Status done(const Record& record) const;

  // active.cpp, passive.cpp
  void received_rep(Time now, const Path& path, const MadView& view);
  void repeated_rep(Time now, Record& record);
  void send_mra(Record& record, Subject subject);
  void received_req(Time now, const Path& path, const MadView& view);
  void repeated_req(Time now, Record& record);
  Listener* listener_for(uint64_t service_id, const Path& path, const IpHeader* ip) const;
  // A record for a request that has come for a listener; nullptr if there is no room for it.
  Record* admit(const Listener& listener, const Path& path, const MadView& view, uint32_t remote_id);
  void evict(Time now, Record& victim);
  void make_room_for_unconfirmed(Time now, const Record& record);
  void received_rtu(Time now, const Path& path, const MadView& view);
  void received_mra(Time now, const Path& path, const MadView& view);

  // rejection.cpp
  Mad rej_of(const Record& record, RejectReason reason, Data info, Data private_data) const;
  void refuse(const Path& path, uint64_t transaction, const Rej& rej);
  void refuse_stale(Time now, Record& old, const Path& path, uint64_t transaction, const Rej& rej);
  void reject_and_go_on(Time now, Record& record, const Mad& rej);
  void wait_rejected(Time now, Record& record);
  void repeat_rej(Time now, Record& record);
  void received_rej(Time now, const Path& path, const MadView& view);
  Record* rejected_record(const Path& path, const Rej& rej);

  // disconnection.cpp
  void begin_disconnection(Time now, Record& record, Data private_data);
  void enter_timewait(Time now, Record& record);
  void received_dreq(Time now, const Path& path, const MadView& view);
  void received_drep(Time now, const Path& path, const MadView& view);

  // sidr.cpp
  void received_sidr_req(Time now, const Path& path, const MadView& view);
  void received_sidr_rep(const Path& path, const MadView& view);
  void answer_and_remember(Time now, Record& record, const SidrRep& reply);

  const Limits limits_;
  Host& host_;
  Table table_;
  Listeners listeners_;
  Counters count_;
  Time others_until_ = 0;
  uint32_t pending_ = 0;
  uint32_t disconnecting_ = 0;
  Unconfirmed unconfirmed_;
  Remembered remembered_;
};

}  // namespace dapple::roce::cm
