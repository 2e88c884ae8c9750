// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// REJ with its reasons, stale connections, and ids destroyed in every state.
#include <initializer_list>

#include "tests/unit/roce/cm_pair.hpp"

using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;

namespace {

Rej refused(Pair& pair, const Req& req) {
  pair.client.cm->connect(pair.now, 1, pair.client.path_to(2), req, pair.active);
  pair.carry(pair.client, pair.server, Attribute::kReq);
  const Rej rej = message_of<Rej>(pair.server.out.front());
  pair.carry(pair.server, pair.client, Attribute::kRej);
  const SeenEvent event = pair.client.seen();
  assert_int_equal(event.type, EventType::kRejected);
  assert_int_equal(event.id, pair.active);
  assert_int_equal(event.reason, rej.reason);
  pair.assert_quiet();
  return rej;
}

Rej rej_with(uint32_t comm_id, uint32_t remote_comm_id) {
  Rej rej;
  rej.comm_id = comm_id;
  rej.remote_comm_id = remote_comm_id;
  rej.subject = Subject::kOther;
  return rej;
}

void req__nobody_listens__invalid_service_id(void** state) {
  Pair& pair = pair_of(state);
  const Rej rej = refused(pair, pair.req());
  assert_int_equal(rej.reason, 8);
  assert_int_equal(rej.subject, Subject::kReq);
  assert_int_equal(rej.comm_id, 0);
  assert_int_equal(pair.server.cm->records(), 0);
  assert_int_equal(pair.server.cm->counters().unserved, 1);
}

void req__listener_for_datagrams_or_no_ip_header__consumer(void** state) {
  Pair& pair = pair_of(state);
  pair.listen({.service_id = kService, .datagram = true});
  assert_int_equal(refused(pair, pair.req()).reason, 28);
  pair.server.cm->destroy(pair.now, pair.listener);
  pair.listen();
  Req req = pair.req();
  req.private_data = {};
  assert_int_equal(refused(pair, req).reason, 28);
}

void req__other_transport__invalid_transport(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  Req req = pair.req();
  req.service = Service::kReliableDatagram;
  req.comm_id = 5;
  pair.server.take(pair.now, {pair.client.path_to(2), make_mad(1, req)});
  assert_int_equal(message_of<Rej>(pair.server.sent()).reason, 9);
}

void reject__of_a_request__reason_info_and_data_arrive(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  std::array<std::byte, 148> data;
  count_up(data, 1);
  std::array<std::byte, 5> info;
  count_up(info, 50);
  assert_int_equal(pair.server.cm->reject(pair.now, pair.passive, RejectReason::kNoResources, info, data), Status::kOk);
  pair.carry(pair.server, pair.client, Attribute::kRej);
  const SeenEvent event = pair.expect(pair.client, EventType::kRejected, true);
  assert_int_equal(event.reason, RejectReason::kNoResources);
  assert_int_equal(event.private_data.size(), 148);
  assert_memory_equal(event.private_data.data(), data.data(), data.size());
  assert_int_equal(event.info.size(), 5);
  assert_int_equal(event.info[4], std::byte{54});
  pair.assert_quiet();
  pair.destroy_both();
  pair.assert_nothing_left();
}

void reject__lost__sent_again_for_the_repeated_req(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  pair.server.cm->reject(pair.now, pair.passive, RejectReason::kConsumer, {}, {});
  const Datagram rej = pair.server.sent();
  pair.server.cm->destroy(pair.now, pair.passive);
  pair.wait();
  pair.carry(pair.client, pair.server, Attribute::kReq);
  // The consumer gets no second request.
  assert_true(pair.server.events.empty());
  assert_true(pair.server.out.front().mad == rej.mad);
  pair.carry(pair.server, pair.client, Attribute::kRej);
  pair.expect(pair.client, EventType::kRejected, true);
  pair.client.cm->destroy(pair.now, pair.active);
  pair.assert_nothing_left();
}

void reject__of_a_response__both_over(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  pair.client.cm->reject(pair.now, pair.active, RejectReason::kConsumer, {}, {});
  assert_int_equal(message_of<Rej>(pair.client.out.front()).subject, Subject::kRep);
  pair.lose(pair.client, Attribute::kRej);
  pair.wait();
  pair.carry(pair.server, pair.client, Attribute::kRep);
  pair.carry(pair.client, pair.server, Attribute::kRej);
  pair.expect(pair.server, EventType::kRejected, true);
  assert_int_equal(pair.server.cm->half_open(), 0);
  pair.destroy_both();
  pair.assert_nothing_left();
}

void reject__after_accept__client_hears_of_it_though_rep_or_rej_got_lost(void** state) {
  for (const bool rep_arrives : {false, true}) {
    Pair pair;
    pair.request();
    pair.accept();
    if (rep_arrives) {
      pair.carry(pair.server, pair.client, Attribute::kRep);
      pair.expect(pair.client, EventType::kResponse);
    } else {
      pair.lose(pair.server, Attribute::kRep);
    }
    pair.server.cm->destroy(pair.now, pair.passive);
    if (rep_arrives) {
      pair.lose(pair.server, Attribute::kRej);
      pair.client.cm->establish(pair.now, pair.active, {});
      pair.lose(pair.client, Attribute::kRtu);
      pair.wait();
      pair.carry(pair.server, pair.client, Attribute::kRej);
      pair.expect(pair.client, EventType::kRejected);
    } else {
      pair.carry(pair.server, pair.client, Attribute::kRej);
      pair.expect(pair.client, EventType::kRejected, true);
    }
    pair.assert_quiet();
    pair.client.cm->destroy(pair.now, pair.active);
    pair.assert_nothing_left();
  }
  (void)state;
}

void destroy__req_sent__server_request_over(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  pair.client.cm->destroy(pair.now, pair.active);
  const Rej rej = message_of<Rej>(pair.client.out.front());
  assert_int_equal(rej.reason, RejectReason::kTimeout);
  assert_int_equal(rej.remote_comm_id, 0);
  pair.carry(pair.client, pair.server, Attribute::kRej);
  const SeenEvent event = pair.expect(pair.server, EventType::kRejected, true);
  assert_int_equal(event.id, pair.passive);
  assert_int_equal(event.reason, RejectReason::kTimeout);
  assert_int_equal(pair.server.cm->accept(pair.now, pair.passive, {}), Status::kWrongState);
  pair.server.cm->destroy(pair.now, pair.passive);
  pair.assert_nothing_left();
}

void destroy__req_sent_and_rej_lost__rep_refused(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  pair.client.cm->destroy(pair.now, pair.active);
  pair.lose(pair.client, Attribute::kRej);
  pair.accept();
  pair.carry(pair.server, pair.client, Attribute::kRep);
  assert_int_equal(message_of<Rej>(pair.client.out.front()).reason, RejectReason::kInvalidCommId);
  pair.carry(pair.client, pair.server, Attribute::kRej);
  pair.expect(pair.server, EventType::kRejected, true);
  pair.assert_quiet();
}

void destroy__established__dreq_until_answered_and_no_event(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  pair.client.cm->destroy(pair.now, pair.active);
  assert_int_equal(pair.client.cm->destroy(pair.now, pair.active), Status::kNoSuchId);
  pair.lose(pair.client, Attribute::kDreq);
  pair.wait();
  pair.carry(pair.client, pair.server, Attribute::kDreq);
  pair.expect(pair.server, EventType::kDisconnected);
  pair.carry(pair.server, pair.client, Attribute::kDrep);
  pair.wait();
  pair.expect(pair.server, EventType::kTimewaitExit, true);
  pair.assert_quiet();
  pair.server.cm->destroy(pair.now, pair.passive);
  pair.assert_nothing_left();
}

void destroy__rep_received__server_rejected(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  pair.client.cm->destroy(pair.now, pair.active);
  pair.carry(pair.client, pair.server, Attribute::kRej);
  assert_int_equal(pair.expect(pair.server, EventType::kRejected, true).reason, RejectReason::kConsumer);
}

// The client's host has crashed and restarted: same queue pair, new comm id.
Datagram reborn_req(Pair& pair) {
  Req req = pair.req();
  req.qpn = 100;
  req.comm_id = 0xBEEF;
  req.ca_guid = 0xCA000001;
  return {pair.client.path_to(2), make_mad(9, req)};
}

void reject__after_accept_while_the_client_thinks__rejected(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  pair.server.cm->destroy(pair.now, pair.passive);
  pair.lose(pair.server, Attribute::kRej);
  pair.wait();
  pair.carry(pair.server, pair.client, Attribute::kRej);
  pair.expect(pair.client, EventType::kRejected);
  assert_int_equal(pair.client.cm->establish(pair.now, pair.active, {}), Status::kWrongState);
  pair.client.cm->destroy(pair.now, pair.active);
  pair.assert_nothing_left();
}

// The client has confirmed, so it may get as many DREQs as it takes.
void reject__after_accept_and_rtu_comes_late__disconnected(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  pair.client.cm->establish(pair.now, pair.active, {});
  pair.server.cm->destroy(pair.now, pair.passive);
  pair.lose(pair.server, Attribute::kRej);
  pair.carry(pair.client, pair.server, Attribute::kRtu);
  pair.lose(pair.server, Attribute::kDreq);
  pair.wait();
  pair.carry(pair.server, pair.client, Attribute::kDreq);
  pair.expect(pair.client, EventType::kDisconnected);
  pair.carry(pair.client, pair.server, Attribute::kDrep);
  pair.client.cm->destroy(pair.now, pair.active);
  pair.assert_nothing_left();
}

// A REJ that the kernel's client would not match to its REQ: it asks again.
void reject__after_accept_and_rep_lost__repeated_req_rejected(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  pair.accept();
  pair.lose(pair.server, Attribute::kRep);
  pair.server.cm->reject(pair.now, pair.passive, RejectReason::kConsumer, {}, {});
  pair.lose(pair.server, Attribute::kRej);
  pair.wait();
  pair.lose(pair.server, Attribute::kRej);
  pair.carry(pair.client, pair.server, Attribute::kReq);
  assert_true(pair.server.events.empty());
  assert_int_equal(message_of<Rej>(pair.server.out.front()).subject, Subject::kReq);
  pair.carry(pair.server, pair.client, Attribute::kRej);
  assert_int_equal(pair.expect(pair.client, EventType::kRejected, true).reason, RejectReason::kConsumer);
  pair.assert_quiet();
  pair.destroy_both();
  pair.assert_nothing_left();
  pair.assert_quiet();
}

void req__queue_pair_connected_already__stale_and_old_one_disconnected(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  const Datagram req = reborn_req(pair);
  pair.server.take(pair.now, req);
  const Rej rej = message_of<Rej>(pair.server.sent());
  assert_int_equal(rej.reason, 10);
  assert_int_equal(rej.remote_comm_id, 0xBEEF);
  assert_true(pair.server.events.empty());
  assert_int_equal(pair.server.cm->counters().stale, 1);
  pair.carry(pair.server, pair.client, Attribute::kDreq);
  pair.carry(pair.client, pair.server, Attribute::kDrep);
  pair.expect(pair.server, EventType::kDisconnected);
  // The old id is in time wait: its queue pair may connect again.
  pair.server.take(pair.now, req);
  pair.expect(pair.server, EventType::kConnectRequest);
}

// A queue pair is stale only by its own host's word: a stranger who names it can neither end its connection nor keep
// it from making one.
void req__of_a_queue_pair_by_another_host__is_another_queue_pair(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  Datagram req = reborn_req(pair);
  req.path = pair.client.path_to(2);
  req.path.local = ipv4_gid(66);
  pair.server.take(pair.now, req);
  pair.expect(pair.server, EventType::kConnectRequest);
  assert_int_equal(pair.server.cm->counters().stale, 0);
  pair.assert_quiet();
}

void req__ids_taken_by_a_forger_at_another_address__gets_through(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.connect();
  const Datagram req = pair.client.sent();
  Datagram forged = req;
  forged.path.local = ipv4_gid(66);
  pair.server.take(pair.now, forged);
  pair.expect(pair.server, EventType::kConnectRequest);
  pair.server.take(pair.now, req);
  pair.passive = pair.expect(pair.server, EventType::kConnectRequest).id;
  pair.accept();
  pair.carry(pair.server, pair.client, Attribute::kRep);
  pair.expect(pair.client, EventType::kResponse);
}

void rep__queue_pair_connected_already__refused_and_req_goes_on(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  const Id old = pair.active;
  pair.request();
  pair.next_qpn = 101;  // the server's first queue pair
  pair.accept();
  pair.carry(pair.server, pair.client, Attribute::kRep);
  assert_true(pair.client.events.empty());
  const Rej rej = message_of<Rej>(pair.client.out.front());
  assert_int_equal(rej.reason, 10);
  assert_int_equal(rej.subject, Subject::kRep);
  pair.carry(pair.client, pair.server, Attribute::kRej);
  assert_int_equal(pair.expect(pair.server, EventType::kRejected).reason, RejectReason::kStaleConnection);
  pair.carry(pair.client, pair.server, Attribute::kDreq);
  pair.expect(pair.server, EventType::kDisconnected);
  pair.carry(pair.server, pair.client, Attribute::kDrep);
  assert_int_equal(pair.expect(pair.client, EventType::kDisconnected).id, old);
  // The REQ arrives again and is a new one.
  pair.wait();
  while (!pair.client.events.empty()) pair.expect(pair.client, EventType::kTimewaitExit, true);
  while (!pair.server.events.empty()) pair.expect(pair.server, EventType::kTimewaitExit, true);
  pair.wait();
  pair.carry(pair.client, pair.server, Attribute::kReq);
  pair.passive = pair.expect(pair.server, EventType::kConnectRequest).id;
  pair.accept();
  pair.carry(pair.server, pair.client, Attribute::kRep);
  pair.expect(pair.client, EventType::kResponse);
}

void rep__with_an_id_that_another_connection_has_or_a_second_id__ignored(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  pair.accept();
  const Rep rep = message_of<Rep>(pair.server.out.front());
  pair.carry(pair.server, pair.client, Attribute::kRep);
  pair.expect(pair.client, EventType::kResponse);
  Rep second = rep;
  second.comm_id = rep.comm_id + 1;
  pair.client.take(pair.now, {pair.server.path_to(1), make_mad(1, second)});
  assert_int_equal(pair.client.cm->counters().unexpected, 1);
  pair.connect();
  second = rep;
  second.remote_comm_id = message_of<Req>(pair.client.sent()).comm_id;
  pair.client.take(pair.now, {pair.server.path_to(1), make_mad(1, second)});
  assert_int_equal(pair.client.cm->counters().unexpected, 2);
  pair.assert_quiet();
}

void rej__in_every_other_state__ignored(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  const Datagram rej{pair.server.path_to(1), make_mad(1, rej_with(1, 2))};
  pair.client.take(pair.now, rej);
  assert_int_equal(pair.client.cm->counters().unknown, 1);
  pair.client.cm->disconnect(pair.now, pair.active, {});
  const Dreq dreq = message_of<Dreq>(pair.client.out.front());
  pair.carry(pair.client, pair.server, Attribute::kDreq);
  pair.carry(pair.server, pair.client, Attribute::kDrep);
  pair.client.events.clear();
  pair.client.take(pair.now, {pair.server.path_to(1), make_mad(1, rej_with(dreq.remote_comm_id, dreq.comm_id))});
  assert_true(pair.client.events.empty());
}

void rej__of_a_dreq__disconnected(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  pair.client.cm->disconnect(pair.now, pair.active, {});
  const Dreq dreq = message_of<Dreq>(pair.client.sent());
  pair.client.take(pair.now, {pair.server.path_to(1), make_mad(1, rej_with(dreq.remote_comm_id, dreq.comm_id))});
  pair.expect(pair.client, EventType::kDisconnected);
  pair.assert_quiet();
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      CM_TEST(req__nobody_listens__invalid_service_id),
      CM_TEST(req__listener_for_datagrams_or_no_ip_header__consumer),
      CM_TEST(req__other_transport__invalid_transport),
      CM_TEST(reject__of_a_request__reason_info_and_data_arrive),
      CM_TEST(reject__lost__sent_again_for_the_repeated_req),
      CM_TEST(reject__of_a_response__both_over),
      CM_TEST(reject__after_accept__client_hears_of_it_though_rep_or_rej_got_lost),
      CM_TEST(reject__after_accept_while_the_client_thinks__rejected),
      CM_TEST(reject__after_accept_and_rtu_comes_late__disconnected),
      CM_TEST(reject__after_accept_and_rep_lost__repeated_req_rejected),
      CM_TEST(destroy__req_sent__server_request_over),
      CM_TEST(destroy__req_sent_and_rej_lost__rep_refused),
      CM_TEST(destroy__established__dreq_until_answered_and_no_event),
      CM_TEST(destroy__rep_received__server_rejected),
      CM_TEST(req__queue_pair_connected_already__stale_and_old_one_disconnected),
      CM_TEST(req__of_a_queue_pair_by_another_host__is_another_queue_pair),
      CM_TEST(req__ids_taken_by_a_forger_at_another_address__gets_through),
      CM_TEST(rep__queue_pair_connected_already__refused_and_req_goes_on),
      CM_TEST(rep__with_an_id_that_another_connection_has_or_a_second_id__ignored),
      CM_TEST(rej__in_every_other_state__ignored),
      CM_TEST(rej__of_a_dreq__disconnected),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
