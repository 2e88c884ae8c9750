// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <endian.h>

#include <initializer_list>
#include <utility>

#include "tests/unit/dappled-rdma-cm/rig.hpp"

using namespace dapple::dappled::rdma_cm;
using namespace dapple::dappled::rdma_cm::test;

namespace {

void connect__whole_life__leaves_nothing(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  pair.carry();
  pair.client.event(pair.active, EventKind::kDisconnected);
  pair.server.event(pair.passive, EventKind::kDisconnected);
  assert_true(pair.wait());
  pair.client.event(pair.active, EventKind::kTimewaitExit);
  pair.server.event(pair.passive, EventKind::kTimewaitExit);
  uint32_t reported = 0;
  assert_int_equal(pair.client.destroy(pair.active, pair.connecting, &reported), 0);
  // ADDR_RESOLVED, ROUTE_RESOLVED, CONNECT_RESPONSE, DISCONNECTED, TIMEWAIT_EXIT.
  assert_int_equal(reported, 5);
  assert_int_equal(pair.server.destroy(pair.passive, pair.accepted, &reported), 0);
  assert_int_equal(reported, 3);
  assert_int_equal(pair.server.destroy(pair.passive, pair.listener, &reported), 0);
  assert_int_equal(reported, 1);
  pair.finish();
}

// The status tells a peer that has agreed from one that is gone.
void disconnect__without_an_answer__has_the_status_of_a_timeout(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  while (pair.active.events.size() == 0) {
    pair.client.out.clear();
    assert_true(pair.wait());
  }
  assert_int_equal(static_cast<int>(pair.client.event(pair.active, EventKind::kDisconnected).status), -ETIMEDOUT);
  pair.client.out.clear();
}

void disconnect__that_is_lost_once__has_no_error(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  pair.client.out.clear();
  assert_true(pair.wait());
  pair.carry();
  assert_int_equal(pair.client.event(pair.active, EventKind::kDisconnected).status, 0);
  assert_int_equal(pair.server.event(pair.passive, EventKind::kDisconnected).status, 0);
}

void connect_request__as_the_kernels(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(0xFF010012, 1, 56)), 0);
  pair.carry();
  const auto event = pair.server.event(pair.passive, EventKind::kConnectRequest);
  assert_int_equal(event.uid, 77);
  assert_int_not_equal(event.id, pair.listener);
  assert_int_equal(event.status, 0);
  const rdma_ucm_conn_param& parameters = event.param.conn;
  assert_int_equal(parameters.qp_num, 0x010012);
  assert_int_equal(parameters.private_data_len, 56);
  for (uint8_t i = 0; i < 56; i++) assert_int_equal(parameters.private_data[i], 1 + i);
  // The peer's initiator depth requires our responder resources.
  assert_int_equal(parameters.responder_resources, 5);
  assert_int_equal(parameters.initiator_depth, 3);
  assert_int_equal(parameters.retry_count, 6);
  assert_int_equal(parameters.rnr_retry_count, 7);
}

void connect_response__as_the_kernels(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(0x20034, 2, 10)), 0);
  pair.carry();
  const auto event = pair.client.event(pair.active, EventKind::kConnectResponse);
  assert_int_equal(event.uid, 11);
  assert_int_equal(event.id, pair.connecting);
  assert_int_equal(event.param.conn.qp_num, 0x20034);
  assert_int_equal(event.param.conn.private_data_len, 196);
  for (uint8_t i = 0; i < 196; i++) assert_int_equal(event.param.conn.private_data[i], i < 10 ? 2 + i : 0);
  assert_int_equal(event.param.conn.responder_resources, 5);
  assert_int_equal(event.param.conn.initiator_depth, 3);
}

// The command by which the active end of a pair that listens and has resolved connects.
rdma_ucm_connect connect_of(const Pair& pair, rdma_ucm_ece ece) {
  rdma_ucm_connect connect = {};
  connect.conn_param = parameters(0x10012);
  connect.id = pair.connecting;
  connect.ece = ece;
  return connect;
}

// As the kernel, which passes 24 bits of the vendor on.
void ece__of_both_ends__in_the_events(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.resolve();
  const rdma_ucm_connect connect = connect_of(pair, {.vendor_id = 0xFF0002C9, .attr_mod = 0x80000003});
  assert_int_equal(pair.client.command(pair.active, RDMA_USER_CM_CMD_CONNECT, connect), 0);
  pair.carry();
  const auto request = pair.server.event(pair.passive, EventKind::kConnectRequest);
  assert_int_equal(request.ece.vendor_id, 0x2C9);
  assert_int_equal(request.ece.attr_mod, 0x80000003);
  rdma_ucm_accept accept = {};
  accept.conn_param = parameters(0x20034);
  accept.uid = 22;
  accept.id = request.id;
  accept.ece = {.vendor_id = 0x123456, .attr_mod = 1};
  assert_int_equal(pair.server.command(pair.passive, RDMA_USER_CM_CMD_ACCEPT, accept), 0);
  pair.carry();
  const auto response = pair.client.event(pair.active, EventKind::kConnectResponse);
  assert_int_equal(response.ece.vendor_id, 0x123456);
  assert_int_equal(response.ece.attr_mod, 1);
}

// Libraries from before ECE write shorter commands, and have less room for events.
void ece__of_older_libraries__none(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.resolve();
  const rdma_ucm_connect connect = connect_of(pair, {.vendor_id = 1, .attr_mod = 2});
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&connect), offsetof(rdma_ucm_connect, ece));
  assert_int_equal(pair.client.exchange(pair.active, RDMA_USER_CM_CMD_CONNECT, bytes, {}), 0);
  pair.carry();
  const auto request = pair.server.event(pair.passive, EventKind::kConnectRequest);
  assert_int_equal(request.ece.vendor_id, 0);
  assert_int_equal(request.ece.attr_mod, 0);
}

void init_qp_attr__of_both_ends__match(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  ib_uverbs_qp_attr client_rtr, client_rts, server_init, server_rtr, server_rts;
  assert_int_equal(pair.client.attributes(pair.active, pair.connecting, IBV_QPS_RTR, client_rtr), 0);
  assert_int_equal(pair.client.attributes(pair.active, pair.connecting, IBV_QPS_RTS, client_rts), 0);
  assert_int_equal(pair.server.attributes(pair.passive, pair.accepted, IBV_QPS_INIT, server_init), 0);
  assert_int_equal(pair.server.attributes(pair.passive, pair.accepted, IBV_QPS_RTR, server_rtr), 0);
  assert_int_equal(pair.server.attributes(pair.passive, pair.accepted, IBV_QPS_RTS, server_rts), 0);

  assert_int_equal(server_init.qp_attr_mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
  // With both kinds of Flush, whose names older headers lack.
  assert_int_equal(server_init.qp_access_flags,
                   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | 1 << 8 | 1 << 9);
  assert_int_equal(server_init.port_num, 1);
  assert_int_equal(client_rtr.qp_attr_mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  assert_int_equal(client_rtr.dest_qp_num, 0x20034);
  assert_int_equal(server_rtr.dest_qp_num, 0x10012);
  assert_int_equal(client_rtr.path_mtu, IBV_MTU_1024);
  assert_int_equal(server_rtr.path_mtu, IBV_MTU_1024);
  assert_int_equal(client_rtr.ah_attr.is_global, 1);
  assert_int_equal(client_rtr.ah_attr.grh.dgid[12], 10);
  assert_int_equal(client_rtr.ah_attr.grh.dgid[15], 2);
  assert_int_equal(server_rtr.ah_attr.grh.dgid[15], 1);
  assert_int_equal(client_rtr.ah_attr.grh.hop_limit, 64);
  assert_int_equal(client_rtr.rq_psn, server_rts.sq_psn);
  assert_int_equal(server_rtr.rq_psn, client_rts.sq_psn);
  assert_int_not_equal(client_rtr.rq_psn, client_rts.sq_psn);
  assert_int_equal(client_rts.max_rd_atomic, server_rtr.max_dest_rd_atomic);
  assert_int_equal(server_rts.max_rd_atomic, client_rtr.max_dest_rd_atomic);
  assert_int_equal(server_rts.retry_cnt, 6);
  assert_int_equal(client_rts.timeout, 17);
  assert_int_equal(server_rts.timeout, 17);
}

uint32_t create_of_type(Host& host, Channel& channel, ibv_qp_type type) {
  rdma_ucm_create_id command = {};
  command.uid = 1;
  command.ps = RDMA_PS_IB;
  command.qp_type = static_cast<uint8_t>(type);
  rdma_ucm_create_id_resp response = {};
  assert_int_equal(host.ask(channel, RDMA_USER_CM_CMD_CREATE_ID, command, response), 0);
  return response.id;
}

// A client asks a listener for a connection.
void connect_types(Pair& pair, ibv_qp_type listening, ibv_qp_type connecting) {
  pair.listener = create_of_type(pair.server, pair.passive, listening);
  assert_int_equal(pair.server.bind(pair.passive, pair.listener, any_ipv4(7174)), 0);
  assert_int_equal(pair.server.listen(pair.passive, pair.listener), 0);
  pair.connecting = create_of_type(pair.client, pair.active, connecting);
  assert_int_equal(pair.client.resolve(pair.active, pair.connecting, ipv4(2, 7174)), 0);
  pair.client.event(pair.active, EventKind::kAddrResolved);
  assert_int_equal(pair.client.resolve_route(pair.active, pair.connecting), 0);
  pair.client.event(pair.active, EventKind::kRouteResolved);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(0x10012)), 0);
  pair.carry();
}

// As in the kernel.
void connect__to_a_listener_of_another_type__is_rejected(void** state) {
  Pair& pair = pair_of(state);
  for (const auto& [listening, connecting] : {std::pair(IBV_QPT_RC, IBV_QPT_UC), std::pair(IBV_QPT_UC, IBV_QPT_RC)}) {
    connect_types(pair, listening, connecting);
    pair.server.assert_no_event(pair.passive);
    const auto event = pair.client.event(pair.active, EventKind::kRejected);
    assert_int_equal(event.status, static_cast<int>(cm::RejectReason::kConsumer));
    assert_int_equal(pair.client.destroy(pair.active, pair.connecting), 0);
    assert_int_equal(pair.server.destroy(pair.passive, pair.listener), 0);
  }
  pair.finish();
}

// A queue pair of this kind takes no parameters of retries and reads.
void init_qp_attr__unreliable_connection__less_than_of_a_reliable_one(void** state) {
  Pair& pair = pair_of(state);
  connect_types(pair, IBV_QPT_UC, IBV_QPT_UC);
  pair.accepted = pair.server.event(pair.passive, EventKind::kConnectRequest).id;
  ib_uverbs_qp_attr attributes;
  assert_int_equal(pair.server.attributes(pair.passive, pair.accepted, IBV_QPS_RTR, attributes), 0);
  assert_int_equal(attributes.qp_attr_mask,
                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
  assert_int_equal(attributes.dest_qp_num, 0x10012);
  assert_int_equal(pair.server.attributes(pair.passive, pair.accepted, IBV_QPS_RTS, attributes), 0);
  assert_int_equal(attributes.qp_attr_mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

void init_qp_attr__before_a_connection__has_no_way(void** state) {
  Pair& pair = pair_of(state);
  pair.resolve();
  ib_uverbs_qp_attr attributes;
  assert_int_equal(pair.client.attributes(pair.active, pair.connecting, IBV_QPS_INIT, attributes), 0);
  assert_int_equal(attributes.qp_attr_mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
  assert_int_equal(attributes.qp_access_flags, 0);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  assert_int_equal(pair.client.attributes(pair.active, pair.connecting, IBV_QPS_INIT, attributes), 0);
  assert_int_equal(pair.client.attributes(pair.active, pair.connecting, IBV_QPS_RTR, attributes), EINVAL);
  assert_int_equal(pair.client.attributes(pair.active, pair.connecting, IBV_QPS_RTS, attributes), EINVAL);
}

void connect__nobody_listens__is_rejected(void** state) {
  Pair& pair = pair_of(state);
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.carry();
  const auto event = pair.client.event(pair.active, EventKind::kRejected);
  assert_int_equal(event.status, 8);
  assert_int_equal(event.param.conn.private_data_len, 148);
}

void connect__no_answer__is_unreachable(void** state) {
  Pair& pair = pair_of(state);
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  while (pair.active.events.size() == 0) {
    pair.client.out.clear();
    assert_true(pair.wait());
  }
  const auto event = pair.client.event(pair.active, EventKind::kUnreachable);
  assert_int_equal(static_cast<int>(event.status), -ETIMEDOUT);
}

void connect__too_much_private_data__is_refused(void** state) {
  Pair& pair = pair_of(state);
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1, 0, 57)), EINVAL);
  assert_true(pair.client.out.empty());
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1, 0, 56)), 0);
}

void connect__twice_or_too_early__is_refused(void** state) {
  Pair& pair = pair_of(state);
  pair.connecting = pair.client.create(pair.active, RDMA_PS_TCP, 1);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), EINVAL);
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, {}), EINVAL);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), EINVAL);
}

void reject__with_private_data__tells_the_peer(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  rdma_ucm_reject reject = {};
  reject.id = pair.accepted;
  reject.private_data_len = 148;
  memset(reject.private_data, 9, sizeof reject.private_data);
  reject.reason = 5;
  assert_int_equal(pair.server.command(pair.passive, RDMA_USER_CM_CMD_REJECT, reject), EINVAL);
  reject.reason = 0;
  assert_int_equal(pair.server.command(pair.passive, RDMA_USER_CM_CMD_REJECT, reject), 0);
  pair.carry();
  const auto event = pair.client.event(pair.active, EventKind::kRejected);
  assert_int_equal(event.status, 28);
  assert_int_equal(event.param.conn.private_data_len, 148);
  assert_int_equal(event.param.conn.private_data[147], 9);
  pair.finish();
}

void accept__too_much_private_data__rejects(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(1, 0, 197)), EINVAL);
  pair.carry();
  assert_int_equal(pair.client.event(pair.active, EventKind::kRejected).status, 28);
}

void destroy_id__of_a_request__rejects(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  assert_int_equal(pair.server.destroy(pair.passive, pair.accepted), 0);
  pair.carry();
  assert_int_equal(pair.client.event(pair.active, EventKind::kRejected).status, 28);
  pair.finish();
}

void destroy_id__of_a_listener__takes_unread_requests_along(void** state) {
  Pair& pair = pair_of(state);
  pair.listen();
  pair.resolve();
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.carry();
  assert_int_equal(pair.server.service->ids(), 2);
  assert_int_equal(pair.server.destroy(pair.passive, pair.listener), 0);
  assert_int_equal(pair.server.removed, 1);
  assert_int_equal(pair.server.service->ids(), 0);
  pair.server.assert_no_event(pair.passive);
  pair.carry();
  assert_int_equal(pair.client.event(pair.active, EventKind::kRejected).status, 28);
}

void close__of_a_connected_channel__disconnects_the_peer(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  pair.client.service->close(pair.client.now, pair.active);
  pair.carry();
  pair.server.event(pair.passive, EventKind::kDisconnected);
  pair.finish();
}

void listen__backlog__counts_unread_requests(void** state) {
  Pair& pair = pair_of(state);
  pair.listener = pair.server.create(pair.passive, RDMA_PS_TCP, 77);
  assert_int_equal(pair.server.bind(pair.passive, pair.listener, any_ipv4(7174)), 0);
  assert_int_equal(pair.server.listen(pair.passive, pair.listener, 2), 0);
  for (uint32_t i = 0; i < 3; i++) {
    pair.resolve();
    assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(i + 1)), 0);
    pair.carry();
  }
  // As in the kernel, the third one gets no answer, so that it comes again.
  pair.client.assert_no_event(pair.active);
  assert_int_equal(pair.server.service->manager().counters().over_backlog, 1);
  assert_int_equal(pair.server.service->manager().records(), 2);
  pair.server.event(pair.passive, EventKind::kConnectRequest);
  pair.server.event(pair.passive, EventKind::kConnectRequest);
  pair.server.assert_no_event(pair.passive);
  assert_true(pair.wait());
  pair.carry();
  pair.server.event(pair.passive, EventKind::kConnectRequest);
  pair.server.assert_no_event(pair.passive);
  pair.client.assert_no_event(pair.active);
  pair.finish();
}

// A REQ of 10.0.0.`host`, with ids of its own.
Datagram request_of(uint8_t host, uint8_t number) {
  cm::Req req;
  req.comm_id = number;
  req.ca_guid = host;
  req.qpn = number;
  req.service_id = cm::service_id_of(cm::PortSpace::kTcp, 7174);
  Address from, to;
  read_address(ipv4(host, 9), from);
  read_address(ipv4(2, 0), to);
  cm::write_ip_header({.source_port = 9, .source = from.gid, .destination = to.gid}, req.private_data);
  return {{.local = to.gid, .remote = from.gid}, cm::make_mad(number, req)};
}

// A program may trust a peer whose address is 127.0.0.1.
void request__impossible_addresses__is_rejected(void** state) {
  Pair& pair = pair_of(state);
  Host& server = pair.server;
  pair.listen();
  const Datagram good = request_of(9, 1);
  cm::Path path = good.path;
  path.device = server.table.at(0).index;
  path.ca_guid = server.table.at(0).guid;
  Address remote, local, other;
  read_address(ipv4(9, 0), remote);
  read_address(ipv4(2, 0), local);
  const auto ask = [&](const cm::Gid& source, const cm::Gid& destination) {
    static uint32_t number = 100;
    cm::Req req;
    req.comm_id = req.qpn = ++number;
    req.ca_guid = 9;
    req.service_id = cm::service_id_of(cm::PortSpace::kTcp, 7174);
    cm::write_ip_header({.source_port = 9, .source = source, .destination = destination}, req.private_data);
    server.service->receive(server.now, path, cm::make_mad(number, req));
  };
  const uint8_t bad[][4] = {{127, 0, 0, 1}, {127, 1, 2, 3}, {0, 0, 0, 0}, {224, 0, 0, 1}, {255, 255, 255, 255}};
  for (const auto& bytes : bad) {
    other = remote;
    memcpy(other.gid.data() + 12, bytes, sizeof bytes);
    ask(other.gid, local.gid);
    ask(remote.gid, other.gid);
    assert_int_equal(server.out.size(), 2);
    server.out.clear();
    server.assert_no_event(pair.passive);
  }
  // Several addresses of one host are no reason.
  other = remote;
  other.gid[15] = 77;
  ask(other.gid, local.gid);
  server.event(pair.passive, EventKind::kConnectRequest);
  pair.finish();
}

// The program has not read the request that its sender takes back. The next one takes its place, and nothing is left.
void listen__displaced_request_has_ended__leaves_no_record(void** state) {
  Pair& pair = pair_of(state);
  Host& server = pair.server;
  pair.listener = server.create(pair.passive, RDMA_PS_TCP, 77);
  assert_int_equal(server.bind(pair.passive, pair.listener, any_ipv4(7174)), 0);
  assert_int_equal(server.listen(pair.passive, pair.listener, 2), 0);
  const auto take = [&](const Datagram& datagram) {
    cm::Path path = datagram.path;
    path.device = server.table.at(0).index;
    path.ca_guid = server.table.at(0).guid;
    server.service->receive(server.now, path, datagram.mad);
  };
  const auto take_back = [&](uint8_t host, uint8_t number) {
    cm::Rej rej{.comm_id = number, .info_size = 8, .reason = cm::RejectReason::kTimeout};
    rej.info[7] = std::byte{host};
    take({request_of(host, number).path, cm::make_mad(number, rej)});
  };
  for (uint8_t host = 10; host < 20; host++) {
    for (uint8_t number = 1; number <= 2; number++) take(request_of(host, number));
    for (uint8_t number = 1; number <= 2; number++) take_back(host, number);
  }
  assert_true(server.service->manager().records() <= 2);
}

void listen__backlog_full_of_one_sender__gives_way_to_another(void** state) {
  Pair& pair = pair_of(state);
  Host& server = pair.server;
  pair.listener = server.create(pair.passive, RDMA_PS_TCP, 77);
  assert_int_equal(server.bind(pair.passive, pair.listener, any_ipv4(7174)), 0);
  assert_int_equal(server.listen(pair.passive, pair.listener, 3), 0);
  const auto take = [&](uint8_t host, uint8_t number) {
    const Datagram request = request_of(host, number);
    cm::Path path = request.path;
    path.device = server.table.at(0).index;
    path.ca_guid = server.table.at(0).guid;
    server.service->receive(server.now, path, request.mad);
  };
  for (uint8_t number = 1; number <= 10; number++) take(9, number);
  assert_int_equal(server.service->manager().counters().over_backlog, 7);
  assert_int_equal(server.wakes, 3);
  // The newcomer's request takes the message of another one.
  take(3, 1);
  assert_int_equal(server.wakes, 3);
  assert_int_equal(server.service->manager().counters().over_backlog, 8);
  assert_int_equal(server.service->manager().records(), 3);
  assert_int_equal(server.service->ids(), 4);
  // One request is each sender's own.
  take(3, 2);
  take(4, 1);
  take(5, 1);
  uint32_t of_host[10] = {};
  for (int i = 0; i < 3; i++) {
    const uint32_t id = server.event(pair.passive, EventKind::kConnectRequest).id;
    rdma_ucm_query_route_resp route;
    assert_int_equal(server.query(pair.passive, id, route), 0);
    of_host[route.ib_route[0].dgid[15]]++;
    assert_int_equal(server.accept(pair.passive, id, 22, parameters(i + 1U)), 0);
  }
  server.assert_no_event(pair.passive);
  assert_int_equal(of_host[9], 1);
  assert_int_equal(of_host[3], 1);
  assert_int_equal(of_host[4], 1);
  // All places are free again.
  for (uint8_t number = 20; number < 23; number++) take(9, number);
  for (int i = 0; i < 3; i++) server.event(pair.passive, EventKind::kConnectRequest);
  server.out.clear();
  pair.finish();
}

void accept__listener_or_disconnected_id__refused(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  const uint32_t listener = pair.server.create(pair.passive, RDMA_PS_TCP, 78);
  assert_int_equal(pair.server.bind(pair.passive, listener, ipv4(2, 7175)), 0);
  assert_int_equal(pair.server.listen(pair.passive, listener), 0);
  assert_int_equal(pair.server.accept(pair.passive, listener, 78, parameters(1)), EINVAL);
  assert_int_equal(pair.server.accept(pair.passive, listener, 78, {}), EINVAL);
  assert_int_equal(pair.client.disconnect(pair.active, pair.connecting), 0);
  pair.carry();
  assert_int_equal(pair.client.accept(pair.active, pair.connecting, 11, {}), EINVAL);
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(1)), EINVAL);
  pair.finish();
}

void notify__communication_established__stands_for_the_rtu(void** state) {
  Pair& pair = pair_of(state);
  pair.respond();
  const rdma_ucm_notify established{pair.accepted, IBV_EVENT_COMM_EST};
  assert_int_equal(pair.server.command(pair.passive, RDMA_USER_CM_CMD_NOTIFY, rdma_ucm_notify{pair.accepted, 0}),
                   EINVAL);
  assert_int_equal(pair.server.command(pair.passive, RDMA_USER_CM_CMD_NOTIFY, established), 0);
  pair.server.event(pair.passive, EventKind::kEstablished);
  assert_int_equal(pair.server.command(pair.passive, RDMA_USER_CM_CMD_NOTIFY, established), EISCONN);
  assert_int_equal(pair.client.accept(pair.active, pair.connecting, 11, {}), 0);
  pair.carry();
  pair.server.assert_no_event(pair.passive);
}

void device_removal__of_a_connection__leaves_destroying(void** state) {
  Pair& pair = pair_of(state);
  pair.establish();
  pair.server.lose_device();
  pair.server.event(pair.passive, EventKind::kDeviceRemoval);
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(1)), EINVAL);
  pair.server.lose_device();
  pair.server.assert_no_event(pair.passive);
  uint32_t reported = 0;
  assert_int_equal(pair.server.destroy(pair.passive, pair.accepted, &reported), 0);
  assert_int_equal(reported, 2);
  // It still listens at any address.
  rdma_ucm_query_route_resp route;
  assert_int_equal(pair.server.query(pair.passive, pair.listener, route), 0);
}

void query_route__of_the_new_id__has_both_addresses(void** state) {
  Pair& pair = pair_of(state);
  pair.request();
  rdma_ucm_query_route_resp theirs, ours;
  assert_int_equal(pair.server.query(pair.passive, pair.accepted, theirs), 0);
  assert_int_equal(pair.client.query(pair.active, pair.connecting, ours), 0);
  assert_int_equal(theirs.num_paths, 1);
  assert_memory_equal(&theirs.src_addr, &ours.dst_addr, sizeof theirs.src_addr);
  assert_memory_equal(&theirs.dst_addr, &ours.src_addr, sizeof theirs.src_addr);
  assert_memory_equal(theirs.ib_route[0].sgid, ours.ib_route[0].dgid, 16);
  assert_int_equal(theirs.node_guid, htobe64(pair.server.table.at(0).guid));
  assert_int_equal(theirs.ibdev_index, pair.server.table.at(0).index);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      RDMA_CM_TEST(connect__whole_life__leaves_nothing),
      RDMA_CM_TEST(disconnect__without_an_answer__has_the_status_of_a_timeout),
      RDMA_CM_TEST(disconnect__that_is_lost_once__has_no_error),
      RDMA_CM_TEST(connect_request__as_the_kernels),
      RDMA_CM_TEST(connect_response__as_the_kernels),
      RDMA_CM_TEST(ece__of_both_ends__in_the_events),
      RDMA_CM_TEST(ece__of_older_libraries__none),
      RDMA_CM_TEST(init_qp_attr__of_both_ends__match),
      RDMA_CM_TEST(connect__to_a_listener_of_another_type__is_rejected),
      RDMA_CM_TEST(init_qp_attr__unreliable_connection__less_than_of_a_reliable_one),
      RDMA_CM_TEST(init_qp_attr__before_a_connection__has_no_way),
      RDMA_CM_TEST(connect__nobody_listens__is_rejected),
      RDMA_CM_TEST(connect__no_answer__is_unreachable),
      RDMA_CM_TEST(connect__too_much_private_data__is_refused),
      RDMA_CM_TEST(connect__twice_or_too_early__is_refused),
      RDMA_CM_TEST(reject__with_private_data__tells_the_peer),
      RDMA_CM_TEST(accept__too_much_private_data__rejects),
      RDMA_CM_TEST(destroy_id__of_a_request__rejects),
      RDMA_CM_TEST(destroy_id__of_a_listener__takes_unread_requests_along),
      RDMA_CM_TEST(close__of_a_connected_channel__disconnects_the_peer),
      RDMA_CM_TEST(listen__backlog__counts_unread_requests),
      RDMA_CM_TEST(request__impossible_addresses__is_rejected),
      RDMA_CM_TEST(listen__displaced_request_has_ended__leaves_no_record),
      RDMA_CM_TEST(listen__backlog_full_of_one_sender__gives_way_to_another),
      RDMA_CM_TEST(accept__listener_or_disconnected_id__refused),
      RDMA_CM_TEST(notify__communication_established__stands_for_the_rtu),
      RDMA_CM_TEST(device_removal__of_a_connection__leaves_destroying),
      RDMA_CM_TEST(query_route__of_the_new_id__has_both_addresses),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
