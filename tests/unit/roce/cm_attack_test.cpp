// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Messages of strangers in every state: from other addresses with the right ids, and with guessed ids and queue pairs
// under the peer's address. Each is dropped and counted, or answered once. None changes a connection, at either end.
#include <functional>
#include <initializer_list>

#include "tests/unit/roce/cm_pair.hpp"

using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;
using dapple::roce::kNever;
using dapple::roce::Time;

namespace {

// A connection in some state at the attacked end.
struct Stage {
  const char* name;
  bool at_client;
  State state;
  void (*begin)(Pair& pair);
};

void begin_disconnecting(Pair& pair) {
  pair.establish();
  pair.client.cm->disconnect(pair.now, pair.active, {});
  pair.client.out.clear();
}

void begin_time_wait(Pair& pair) {
  begin_disconnecting(pair);
  pair.server.cm->disconnect(pair.now, pair.passive, {});
  pair.carry(pair.server, pair.client, Attribute::kDreq);
  pair.carry(pair.client, pair.server, Attribute::kDrep);
  pair.client.events.clear();
  pair.server.events.clear();
}

const Stage kStages[] = {
    {"REQ sent", true, State::kReqSent,
     [](Pair& pair) {
       pair.listen();
       pair.connect();
       pair.client.out.clear();
     }},
    {"REQ received", false, State::kReqReceived, [](Pair& pair) { pair.request(); }},
    {"REP sent", false, State::kRepSent,
     [](Pair& pair) {
       pair.request();
       pair.accept();
       pair.server.out.clear();
     }},
    {"REP received", true, State::kRepReceived, [](Pair& pair) { pair.respond(); }},
    {"established, active", true, State::kEstablished, [](Pair& pair) { pair.establish(); }},
    {"established, passive", false, State::kEstablished, [](Pair& pair) { pair.establish(); }},
    {"DREQ sent", true, State::kDreqSent, begin_disconnecting},
    {"time wait, active", true, State::kTimewait, begin_time_wait},
    {"time wait, passive", false, State::kTimewait, begin_time_wait},
    {"REP taken back", false, State::kRejected,
     [](Pair& pair) {
       pair.respond();
       pair.server.cm->reject(pair.now, pair.passive, RejectReason::kConsumer, {}, {});
       pair.server.out.clear();
     }},
};

// The ids that an attacker puts into a message.
struct Ids {
  uint32_t target = 0;  // the attacked end's
  uint32_t peer = 0;
  uint32_t qpn = 0;  // the attacked end's
  uint64_t peer_guid = 0;
};

std::vector<Mad> all_messages(const Ids& ids) {
  std::vector<Mad> all;
  for (const Subject subject : {Subject::kReq, Subject::kRep, Subject::kOther, Subject{3}}) {
    all.push_back(make_mad(1, Mra{.comm_id = ids.peer, .remote_comm_id = ids.target, .subject = subject}));
    for (const RejectReason reason : {RejectReason::kConsumer, RejectReason::kStaleConnection, RejectReason::kTimeout})
      all.push_back(
          make_mad(1, Rej{.comm_id = ids.peer, .remote_comm_id = ids.target, .subject = subject, .reason = reason}));
  }
  all.push_back(
      make_mad(1, Rep{.comm_id = ids.peer, .remote_comm_id = ids.target, .qpn = 0x777, .ca_guid = ids.peer_guid}));
  all.push_back(make_mad(1, Rtu{.comm_id = ids.peer, .remote_comm_id = ids.target}));
  all.push_back(make_mad(1, Dreq{.comm_id = ids.peer, .remote_comm_id = ids.target, .remote_qpn = ids.qpn}));
  all.push_back(make_mad(1, Drep{.comm_id = ids.peer, .remote_comm_id = ids.target}));
  all.push_back(make_mad(1, SidrRep{.request_id = ids.target}));
  for (const int attribute : {0x19, 0x1A}) {
    Mad path = make_mad(1, Rtu{.comm_id = ids.peer, .remote_comm_id = ids.target});
    path[17] = static_cast<std::byte>(attribute);
    all.push_back(path);
  }
  return all;
}

uint64_t counted(const Manager& cm) {
  const Counters& count = cm.counters();
  return count.malformed + count.unsupported + count.duplicates + count.unexpected + count.unknown + count.foreign +
         count.stale + count.unserved + count.over_backlog + count.over_limit;
}

class Attack {
 public:
  explicit Attack(const Stage& stage) : stage_(stage) {
    stage.begin(pair_);
    pair_.server.out.clear();
    pair_.client.out.clear();
    save(before_);
    ids_ = {before_.local_id, before_.remote_id, before_.local_qpn, before_.remote_guid};
  }

  Ids ids() const { return ids_; }

  // Sends the message to the attacked end, and its answer to the real peer's end, if it goes there.
  void strike(uint8_t from, const Mad& mad) {
    Node& target = stage_.at_client ? pair_.client : pair_.server;
    Node& peer = stage_.at_client ? pair_.server : pair_.client;
    const Time deadline = target.cm->deadline(), peer_deadline = peer.cm->deadline();
    const uint64_t count = counted(*target.cm);
    Path path = target.path_to(peer);
    path.remote = ipv4_gid(from);
    target.cm->receive(pair_.now, path, mad);
    const unsigned attribute = static_cast<unsigned>(mad[17]);
    if (counted(*target.cm) != count + 1 || target.out.size() > 1 || !target.events.empty() ||
        target.cm->deadline() != deadline) {
      fail_msg("%s: attribute %#x from %u counts %d, %zu answers, %zu events", stage_.name, attribute, from,
               static_cast<int>(counted(*target.cm) - count), target.out.size(), target.events.size());
    }
    while (!target.out.empty()) {
      const Datagram answer = target.sent();
      assert_true(answer.path.remote == ipv4_gid(from));
      if (answer.path.remote == target.path_to(peer).remote) peer.take(pair_.now, answer);
    }
    if (!peer.events.empty() || !peer.out.empty() || peer.cm->deadline() != peer_deadline)
      fail_msg("%s: the answer to attribute %#x changes the peer", stage_.name, attribute);
    Saved after;
    save(after);
    assert_int_equal(after.state, stage_.state);
    assert_int_equal(after.remote_id, before_.remote_id);
    assert_int_equal(after.remote_qpn, before_.remote_qpn);
  }

  uint8_t peer_number() const { return stage_.at_client ? 2 : 1; }

 private:
  void save(Saved& saved) const {
    const Pair& pair = pair_;
    assert_int_equal(
        stage_.at_client ? pair.client.cm->save(pair.active, saved) : pair.server.cm->save(pair.passive, saved),
        Status::kOk);
  }

  const Stage& stage_;
  Pair pair_;
  Saved before_;
  Ids ids_;
};

void right_ids_from_another_address__change_nothing(void**) {
  for (const Stage& stage : kStages) {
    Attack attack(stage);
    for (const Mad& mad : all_messages(attack.ids())) attack.strike(66, mad);
  }
}

void guessed_ids_under_the_peers_address__change_nothing(void**) {
  for (const Stage& stage : kStages) {
    Attack attack(stage);
    for (const uint32_t guess : {attack.ids().target + 1, 0U, UINT32_MAX}) {
      Ids ids = attack.ids();
      ids.target = guess;
      // The peer's id is guessed, too: whoever knows it could write to the peer directly.
      ids.peer += 1;
      for (const Mad& mad : all_messages(ids)) attack.strike(attack.peer_number(), mad);
    }
  }
}

void guessed_id_of_the_peer__changes_nothing(void**) {
  for (const Stage& stage : kStages) {
    // Before its REP, the peer's id is unknown: the right id of the REQ suffices.
    if (stage.state == State::kReqSent) continue;
    Attack attack(stage);
    Ids ids = attack.ids();
    ids.peer += 1;
    for (const Mad& mad : all_messages(ids)) attack.strike(attack.peer_number(), mad);
  }
}

void dreq_with_a_guessed_queue_pair__changes_nothing(void**) {
  for (const Stage& stage : kStages) {
    if (stage.state != State::kEstablished && stage.state != State::kDreqSent && stage.state != State::kRepSent)
      continue;
    Attack attack(stage);
    for (const uint32_t qpn : {attack.ids().qpn + 1, 0U, 0xFFFFFFU}) {
      attack.strike(
          attack.peer_number(),
          make_mad(1, Dreq{.comm_id = attack.ids().peer, .remote_comm_id = attack.ids().target, .remote_qpn = qpn}));
    }
  }
}

// A REJ for a time-out names a connection by the CA and the comm id of its sender, without the receiver's id.
void rej_for_a_time_out_by_another_host__changes_nothing(void**) {
  for (const Stage& stage : kStages) {
    if (stage.state == State::kReqSent) continue;
    Attack attack(stage);
    Rej rej{.comm_id = attack.ids().peer, .info_size = 8, .reason = RejectReason::kTimeout};
    for (size_t i = 0; i < 8; ++i) rej.info[i] = static_cast<std::byte>(attack.ids().peer_guid >> (56 - 8 * i));
    attack.strike(66, make_mad(1, rej));
  }
}

void req_with_odd_fields__counted_or_a_request(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.listen({.service_id = kDatagramService, .datagram = true});
  const Req good = pair.req();
  std::vector<Req> odd;
  const auto add = [&](const std::function<void(Req&)>& change) {
    odd.push_back(good);
    odd.back().ca_guid = odd.size();
    odd.back().comm_id = static_cast<uint32_t>(odd.size());
    change(odd.back());
  };
  add([](Req& req) { req.comm_id = 0; });
  add([](Req& req) { req.qpn = 0; });
  add([](Req& req) { req.qpn = 0xFFFFFF; });
  add([](Req& req) { req.mtu = 15; });
  add([](Req& req) { req.pkey = 0; });
  add([](Req& req) { req.max_cm_retries = 0; });
  add([](Req& req) { req.local_gid = req.remote_gid = {}; });
  add([](Req& req) { req.ack_timeout = req.local_response_timeout = req.remote_response_timeout = 31; });
  const size_t requests = odd.size();
  add([](Req& req) { req.service = Service::kReliableDatagram; });
  add([](Req& req) { req.service = Service::kExtended; });
  add([](Req& req) { req.service_id = 0; });
  add([](Req& req) { req.service_id = UINT64_MAX; });
  add([](Req& req) { req.service_id = kDatagramService; });
  add([](Req& req) { req.private_data[0] = std::byte{1}; });
  add([](Req& req) { req.private_data[1] = std::byte{0x50}; });
  for (size_t i = 0; i < odd.size(); ++i) {
    const uint64_t before = counted(*pair.server.cm);
    pair.server.take(pair.now, {pair.client.path_to(2), make_mad(i, odd[i])});
    if (i < requests) {
      pair.expect(pair.server, EventType::kConnectRequest);
    } else {
      assert_int_equal(pair.server.sent().attribute(), Attribute::kRej);
      assert_int_equal(counted(*pair.server.cm), before + 1);
    }
    pair.assert_quiet();
  }
  assert_int_equal(pair.server.cm->records(), requests);
}

void sidr_for_exchanges_of_others__changes_nothing(void** state) {
  Pair& pair = pair_of(state);
  pair.listen({.service_id = kDatagramService, .datagram = true});
  SidrReq request;
  request.service_id = kDatagramService;
  write_ip_header(sample_ip_header(false), request.private_data);
  Id id = kNoId;
  assert_int_equal(pair.client.cm->resolve(pair.now, 1, pair.client.path_to(2), request, 20, 3, id), Status::kOk);
  const SidrReq sent = message_of<SidrReq>(pair.client.out.front());
  pair.carry(pair.client, pair.server, Attribute::kSidrReq);
  pair.expect(pair.server, EventType::kSidrRequest);
  const auto strike = [&](Node& target, uint8_t from, const Mad& mad) {
    const uint64_t before = counted(*target.cm);
    Path path = target.path_to(from);
    target.cm->receive(pair.now, path, mad);
    assert_int_equal(counted(*target.cm), before + 1);
    assert_true(target.events.empty());
    target.out.clear();
  };
  // The request's answer by another host, or for another request.
  strike(pair.client, 66, make_mad(1, SidrRep{.request_id = sent.request_id}));
  strike(pair.client, 2, make_mad(1, SidrRep{.request_id = sent.request_id + 1}));
  // Messages about connections for the id of an exchange.
  for (const Mad& mad : all_messages({.target = sent.request_id, .peer = 5})) {
    MadView view;
    assert_int_equal(open_mad(mad, view), MadError::kNone);
    if (view.attribute != Attribute::kSidrRep) strike(pair.client, 2, mad);
  }
  // The real answer still arrives.
  pair.client.take(pair.now, {pair.server.path_to(1), make_mad(1, SidrRep{.request_id = sent.request_id})});
  pair.expect(pair.client, EventType::kSidrReply, true);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(right_ids_from_another_address__change_nothing),
      cmocka_unit_test(guessed_ids_under_the_peers_address__change_nothing),
      cmocka_unit_test(guessed_id_of_the_peer__changes_nothing),
      cmocka_unit_test(dreq_with_a_guessed_queue_pair__changes_nothing),
      cmocka_unit_test(rej_for_a_time_out_by_another_host__changes_nothing),
      CM_TEST(req_with_odd_fields__counted_or_a_request),
      CM_TEST(sidr_for_exchanges_of_others__changes_nothing),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
