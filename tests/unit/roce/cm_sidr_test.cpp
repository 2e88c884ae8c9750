// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Service ID resolution.
#include <initializer_list>

#include "tests/unit/roce/cm_pair.hpp"

using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;

namespace {

SidrReq request_of() {
  SidrReq request;
  request.service_id = kDatagramService;
  count_up(request.private_data, 1);
  write_ip_header(sample_ip_header(false), request.private_data);
  return request;
}

void resolve(Pair& pair) {
  assert_int_equal(pair.client.cm->resolve(pair.now, 11, pair.client.path_to(2), request_of(), 20, 15, pair.active),
                   Status::kOk);
}

// Runs up to kSidrRequest at the server.
void ask(Pair& pair) {
  ListenParameters parameters;
  parameters.service_id = kDatagramService;
  parameters.datagram = true;
  parameters.user = 77;
  pair.listen(parameters);
  resolve(pair);
  pair.carry(pair.client, pair.server, Attribute::kSidrReq);
  const SeenEvent event = pair.expect(pair.server, EventType::kSidrRequest);
  pair.passive = event.id;
  assert_int_equal(event.listener, pair.listener);
  assert_int_equal(event.user, 77);
  assert_true(event.has_ip && event.ip == sample_ip_header(false));
  assert_int_equal(event.private_data.size(), 180);
}

SidrRep reply_of() {
  SidrRep reply;
  reply.qpn = 0x1234;
  reply.qkey = 0x01234567;
  count_up(reply.private_data, 7);
  return reply;
}

void resolve__answered__reply_and_nothing_left(void** state) {
  Pair& pair = pair_of(state);
  ask(pair);
  assert_int_equal(pair.server.cm->half_open(), 1);
  assert_int_equal(pair.server.cm->answer(pair.now, pair.passive, reply_of()), Status::kOk);
  assert_int_equal(pair.server.cm->answer(pair.now, pair.passive, reply_of()), Status::kWrongState);
  assert_int_equal(pair.server.cm->half_open(), 0);
  pair.carry(pair.server, pair.client, Attribute::kSidrRep);
  const SeenEvent event = pair.expect(pair.client, EventType::kSidrReply, true);
  assert_int_equal(event.id, pair.active);
  assert_int_equal(event.sidr_rep.status, SidrStatus::kValid);
  assert_int_equal(event.sidr_rep.qpn, 0x1234);
  assert_int_equal(event.sidr_rep.qkey, 0x01234567);
  assert_int_equal(event.sidr_rep.service_id, kDatagramService);
  assert_int_equal(event.private_data.size(), 136);
  pair.assert_quiet();
  pair.destroy_both();
  pair.assert_quiet();
  pair.assert_nothing_left();
}

void resolve__reply_lost__sent_again_without_a_second_event(void** state) {
  Pair& pair = pair_of(state);
  ask(pair);
  pair.server.cm->answer(pair.now, pair.passive, reply_of());
  pair.lose(pair.server, Attribute::kSidrRep);
  pair.server.cm->destroy(pair.now, pair.passive);
  pair.wait();
  pair.carry(pair.client, pair.server, Attribute::kSidrReq);
  pair.carry(pair.server, pair.client, Attribute::kSidrRep);
  pair.expect(pair.client, EventType::kSidrReply, true);
  pair.assert_quiet();
}

void resolve__repeated_while_the_consumer_thinks__one_event(void** state) {
  Pair& pair = pair_of(state);
  ask(pair);
  pair.wait();
  pair.carry(pair.client, pair.server, Attribute::kSidrReq);
  pair.assert_quiet();
  assert_int_equal(pair.server.cm->counters().duplicates, 1);
}

void resolve__nobody_listens__unsupported(void** state) {
  Pair& pair = pair_of(state);
  resolve(pair);
  pair.carry(pair.client, pair.server, Attribute::kSidrReq);
  pair.carry(pair.server, pair.client, Attribute::kSidrRep);
  assert_int_equal(pair.expect(pair.client, EventType::kSidrReply, true).sidr_rep.status, SidrStatus::kUnsupported);
  assert_int_equal(pair.server.cm->records(), 0);
}

void resolve__listener_for_connections__rejected(void** state) {
  Pair& pair = pair_of(state);
  ListenParameters parameters;
  parameters.service_id = kDatagramService;
  pair.listen(parameters);
  resolve(pair);
  pair.carry(pair.client, pair.server, Attribute::kSidrReq);
  pair.carry(pair.server, pair.client, Attribute::kSidrRep);
  assert_int_equal(pair.expect(pair.client, EventType::kSidrReply, true).sidr_rep.status, SidrStatus::kRejected);
}

void destroy__before_the_answer__rejected(void** state) {
  Pair& pair = pair_of(state);
  ask(pair);
  pair.server.cm->destroy(pair.now, pair.passive);
  pair.carry(pair.server, pair.client, Attribute::kSidrRep);
  assert_int_equal(pair.expect(pair.client, EventType::kSidrReply, true).sidr_rep.status, SidrStatus::kRejected);
  pair.client.cm->destroy(pair.now, pair.active);
  pair.assert_nothing_left();
}

void resolve__never_answered__unreachable(void** state) {
  Pair& pair = pair_of(state);
  resolve(pair);
  const uint64_t before = pair.now;
  for (unsigned i = 0; i < kSendings; ++i) {
    pair.lose(pair.client, Attribute::kSidrReq);
    pair.wait();
  }
  assert_int_equal(pair.now - before, kSendings * wait_of(20));
  pair.expect(pair.client, EventType::kUnreachable, true);
  pair.assert_quiet();
}

void resolve__reply_of_another_host_or_after_destroy__ignored(void** state) {
  Pair& pair = pair_of(state);
  ask(pair);
  pair.server.cm->answer(pair.now, pair.passive, reply_of());
  Datagram reply = pair.server.sent();
  const Path path = reply.path;
  reply.path.local = ipv4_gid(66);
  pair.client.take(pair.now, reply);
  assert_int_equal(pair.client.cm->counters().foreign, 1);
  reply.path = path;
  pair.client.cm->destroy(pair.now, pair.active);
  pair.client.take(pair.now, reply);
  assert_int_equal(pair.client.cm->counters().unknown, 1);
  pair.assert_quiet();
}

// Connections and SIDR exchanges share one kind of ids.
void resolve__messages_of_connections_for_its_id__ignored(void** state) {
  Pair& pair = pair_of(state);
  resolve(pair);
  const uint32_t id = message_of<SidrReq>(pair.client.sent()).request_id;
  Rep rep;
  rep.remote_comm_id = id;
  Rej rej;
  rej.remote_comm_id = id;
  Mra mra;
  mra.remote_comm_id = id;
  Rtu rtu;
  rtu.remote_comm_id = id;
  Dreq dreq;
  dreq.remote_comm_id = id;
  Drep drep;
  drep.remote_comm_id = id;
  const uint64_t before = pair.client.cm->deadline();
  for (const Mad& mad :
       {make_mad(1, rep), make_mad(1, rej), make_mad(1, mra), make_mad(1, rtu), make_mad(1, dreq), make_mad(1, drep)})
    pair.client.take(pair.now, {pair.server.path_to(1), mad});
  assert_true(pair.client.events.empty());
  assert_true(pair.client.cm->deadline() == before);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      CM_TEST(resolve__answered__reply_and_nothing_left),
      CM_TEST(resolve__reply_lost__sent_again_without_a_second_event),
      CM_TEST(resolve__repeated_while_the_consumer_thinks__one_event),
      CM_TEST(resolve__nobody_listens__unsupported),
      CM_TEST(resolve__listener_for_connections__rejected),
      CM_TEST(destroy__before_the_answer__rejected),
      CM_TEST(resolve__never_answered__unreachable),
      CM_TEST(resolve__reply_of_another_host_or_after_destroy__ignored),
      CM_TEST(resolve__messages_of_connections_for_its_id__ignored),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
