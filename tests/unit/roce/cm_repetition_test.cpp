// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Datagrams that are lost or arrive twice, time-outs, and MRAs.
#include <initializer_list>

#include "tests/unit/roce/cm_pair.hpp"

using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;

namespace {

void req_lost__sent_again_after_the_period(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.connect();
  const Datagram first = pair.client.sent();
  const uint64_t before = pair.now;
  pair.wait();
  assert_int_equal(pair.now - before, kPeriod);
  assert_true(pair.client.out.front().mad == first.mad);
  pair.carry(pair.client, pair.server, Attribute::kReq);
  pair.expect(pair.server, EventType::kConnectRequest);
  assert_int_equal(pair.client.cm->counters().resent, 1);
}

void req_never_answered__unreachable_after_all_sendings(void** state) {
  Pair& pair = pair_of(state);
  pair.connect();
  const uint64_t before = pair.now;
  for (unsigned i = 0; i < kSendings; ++i) {
    pair.lose(pair.client, Attribute::kReq);
    assert_true(pair.client.events.empty());
    pair.wait();
  }
  assert_int_equal(pair.now - before, kSendings * kPeriod);
  pair.expect(pair.client, EventType::kUnreachable, true);
  const Rej rej = message_of<Rej>(pair.client.sent());
  assert_int_equal(rej.reason, RejectReason::kTimeout);
  assert_int_equal(rej.info_size, 8);
  pair.assert_quiet();
  pair.client.cm->destroy(pair.now, pair.active);
  pair.assert_nothing_left();
}

void rep_lost__sent_again_by_time_and_for_a_repeated_req(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  pair.accept();
  pair.lose(pair.server, Attribute::kRep);
  // Both wait for the same time, so each sends again.
  pair.wait();
  pair.lose(pair.server, Attribute::kRep);
  pair.carry(pair.client, pair.server, Attribute::kReq);
  assert_int_equal(pair.server.cm->counters().duplicates, 1);
  pair.carry(pair.server, pair.client, Attribute::kRep);
  pair.expect(pair.client, EventType::kResponse);
  pair.assert_quiet();
}

void rep_never_answered__unreachable_and_the_client_hears_of_it(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  pair.accept();
  pair.carry(pair.server, pair.client, Attribute::kRep);
  pair.expect(pair.client, EventType::kResponse);
  pair.client.cm->establish(pair.now, pair.active, {});
  pair.lose(pair.client, Attribute::kRtu);
  for (unsigned i = 1; i < kSendings; ++i) {
    pair.wait();
    pair.lose(pair.server, Attribute::kRep);
  }
  pair.wait();
  pair.expect(pair.server, EventType::kUnreachable, true);
  assert_int_equal(pair.server.cm->half_open(), 0);
  pair.carry(pair.server, pair.client, Attribute::kRej);
  assert_int_equal(pair.expect(pair.client, EventType::kRejected).reason, RejectReason::kTimeout);
  pair.wait();
  pair.expect(pair.client, EventType::kTimewaitExit, true);
  pair.destroy_both();
  pair.assert_nothing_left();
}

void rtu_lost__sent_again_for_the_next_rep(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  const std::array<std::byte, 4> data{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  pair.client.cm->establish(pair.now, pair.active, data);
  const Datagram rtu = pair.client.sent();
  pair.wait();
  pair.carry(pair.server, pair.client, Attribute::kRep);
  assert_true(pair.client.events.empty());
  assert_true(pair.client.out.front().mad == rtu.mad);
  pair.carry(pair.client, pair.server, Attribute::kRtu);
  assert_int_equal(pair.expect(pair.server, EventType::kEstablished).private_data[3], std::byte{4});
  pair.assert_quiet();
}

void dreq_lost__sent_again(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  pair.client.cm->disconnect(pair.now, pair.active, {});
  pair.lose(pair.client, Attribute::kDreq);
  pair.wait();
  pair.carry(pair.client, pair.server, Attribute::kDreq);
  pair.expect(pair.server, EventType::kDisconnected);
  pair.carry(pair.server, pair.client, Attribute::kDrep);
  pair.expect(pair.client, EventType::kDisconnected);
}

void drep_lost__dreq_answered_again_even_when_all_is_gone(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  pair.client.cm->disconnect(pair.now, pair.active, {});
  pair.carry(pair.client, pair.server, Attribute::kDreq);
  pair.expect(pair.server, EventType::kDisconnected);
  pair.lose(pair.server, Attribute::kDrep);
  pair.server.cm->destroy(pair.now, pair.passive);
  pair.wait();  // the server's time wait
  assert_int_equal(pair.server.cm->records(), 0);
  pair.wait();
  pair.carry(pair.client, pair.server, Attribute::kDreq);
  pair.carry(pair.server, pair.client, Attribute::kDrep);
  pair.expect(pair.client, EventType::kDisconnected);
  pair.assert_quiet();
}

void dreq_never_answered__disconnected_after_all_sendings(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  pair.client.cm->disconnect(pair.now, pair.active, {});
  for (unsigned i = 0; i < kSendings; ++i) {
    pair.lose(pair.client, Attribute::kDreq);
    assert_true(pair.client.events.empty());
    pair.wait();
  }
  pair.expect(pair.client, EventType::kDisconnected);
  pair.wait();
  pair.expect(pair.client, EventType::kTimewaitExit, true);
  pair.assert_quiet();
}

void every_message_twice__same_events_as_once(void** state) {
  Pair& pair = pair_of(state);
  const auto twice = [&](Node& from, Node& to, Attribute attribute) {
    const Datagram datagram = from.sent();
    assert_int_equal(datagram.attribute(), attribute);
    to.take(pair.now, datagram);
    const size_t events = to.events.size();
    const size_t answers = to.out.size();
    to.take(pair.now, datagram);
    assert_int_equal(to.events.size(), events);
    // A second answer at most.
    assert_in_range(to.out.size() - answers, 0, 1);
  };
  pair.listen();
  pair.connect();
  twice(pair.client, pair.server, Attribute::kReq);
  pair.passive = pair.expect(pair.server, EventType::kConnectRequest).id;
  // While the consumer decides, an MRA asks its peer to wait.
  const Mra mra = message_of<Mra>(pair.server.out.front());
  assert_int_equal(mra.subject, Subject::kReq);
  assert_int_equal(mra.service_timeout, 24);
  twice(pair.server, pair.client, Attribute::kMra);
  pair.accept();
  twice(pair.server, pair.client, Attribute::kRep);
  pair.expect(pair.client, EventType::kResponse);
  assert_int_equal(message_of<Mra>(pair.client.out.front()).subject, Subject::kRep);
  twice(pair.client, pair.server, Attribute::kMra);
  pair.client.cm->establish(pair.now, pair.active, {});
  twice(pair.client, pair.server, Attribute::kRtu);
  pair.expect(pair.server, EventType::kEstablished);
  pair.server.cm->disconnect(pair.now, pair.passive, {});
  twice(pair.server, pair.client, Attribute::kDreq);
  pair.expect(pair.client, EventType::kDisconnected);
  pair.lose(pair.client, Attribute::kDrep);
  twice(pair.client, pair.server, Attribute::kDrep);
  pair.expect(pair.server, EventType::kDisconnected);
  pair.assert_quiet();
  assert_int_equal(pair.client.cm->counters().unexpected + pair.server.cm->counters().unexpected, 0);
}

void every_message_replayed_after_the_end__no_event(void** state) {
  Pair& pair = pair_of(state);
  std::vector<Datagram> to_server;
  std::vector<Datagram> to_client;
  const auto carry = [&](Node& from, Node& to) {
    const Datagram datagram = from.sent();
    (&to == &pair.server ? to_server : to_client).push_back(datagram);
    to.take(pair.now, datagram);
  };
  pair.listen();
  pair.connect();
  carry(pair.client, pair.server);
  pair.passive = pair.expect(pair.server, EventType::kConnectRequest).id;
  pair.accept();
  carry(pair.server, pair.client);
  pair.client.cm->establish(pair.now, pair.active, {});
  carry(pair.client, pair.server);
  pair.client.cm->disconnect(pair.now, pair.active, {});
  carry(pair.client, pair.server);
  carry(pair.server, pair.client);
  pair.client.events.clear();
  pair.server.events.clear();
  for (const Datagram& datagram : to_server) pair.server.take(pair.now, datagram);
  for (const Datagram& datagram : to_client) pair.client.take(pair.now, datagram);
  assert_true(pair.client.events.empty() && pair.server.events.empty());
  // In time wait the REQ is known: stale. A DREQ is answered, but an RTU, a REP and a DREP are not.
  assert_int_equal(message_of<Rej>(pair.server.sent()).reason, RejectReason::kStaleConnection);
  pair.lose(pair.server, Attribute::kDrep);
  pair.assert_quiet();
}

void mra__prolongs_once_for_each_sending(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  assert_int_equal(pair.server.cm->prolong(pair.now, pair.passive, 22), Status::kOk);
  const Datagram mra = pair.server.sent();
  pair.client.take(pair.now, mra);
  const uint64_t until = pair.now + wait_of(22) + wait_of(17);
  assert_true(pair.client.cm->deadline() == until);
  pair.now += 1'000'000'000;
  pair.client.take(pair.now, mra);
  assert_true(pair.client.cm->deadline() == until);
  assert_int_equal(pair.client.cm->counters().duplicates, 1);
  pair.wait();
  pair.carry(pair.client, pair.server, Attribute::kReq);
  assert_true(pair.client.cm->deadline() == pair.now + kPeriod);
  // The manager repeats the consumer's own time-out.
  assert_int_equal(message_of<Mra>(pair.server.out.front()).service_timeout, 22);
  pair.carry(pair.server, pair.client, Attribute::kMra);
  assert_true(pair.client.cm->deadline() == pair.now + wait_of(22) + wait_of(17));
}

void mra__short_one__never_shortens(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  pair.server.cm->prolong(pair.now, pair.passive, 1);
  const uint64_t before = pair.client.cm->deadline();
  pair.carry(pair.server, pair.client, Attribute::kMra);
  assert_true(pair.client.cm->deadline() == before);
}

void time_outs__from_the_message_within_limits(void** state) {
  assert_int_equal(wait_of(20), 4096ULL << 20);
  assert_int_equal(wait_of(0), 1'000'000);
  assert_int_equal(wait_of(31), wait_of(24));
  assert_int_equal(wait_of(255), wait_of(24));
  for (const uint8_t retries : {0, 1, 5}) {
    Pair pair;
    Req req = pair.req();
    req.remote_response_timeout = 12;
    req.ack_timeout = 10;
    req.max_cm_retries = retries;
    pair.client.cm->connect(pair.now, 1, pair.client.path_to(2), req, pair.active);
    const uint64_t before = pair.now;
    while (pair.client.events.empty()) pair.wait();
    assert_int_equal(pair.now - before, (retries + 1) * (wait_of(12) + wait_of(10)));
    assert_int_equal(pair.client.out.size(), retries + 2);
  }
  (void)state;
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      CM_TEST(req_lost__sent_again_after_the_period),
      CM_TEST(req_never_answered__unreachable_after_all_sendings),
      CM_TEST(rep_lost__sent_again_by_time_and_for_a_repeated_req),
      CM_TEST(rep_never_answered__unreachable_and_the_client_hears_of_it),
      CM_TEST(rtu_lost__sent_again_for_the_next_rep),
      CM_TEST(dreq_lost__sent_again),
      CM_TEST(drep_lost__dreq_answered_again_even_when_all_is_gone),
      CM_TEST(dreq_never_answered__disconnected_after_all_sendings),
      CM_TEST(every_message_twice__same_events_as_once),
      CM_TEST(every_message_replayed_after_the_end__no_event),
      CM_TEST(mra__prolongs_once_for_each_sending),
      CM_TEST(mra__short_one__never_shortens),
      CM_TEST(time_outs__from_the_message_within_limits),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
