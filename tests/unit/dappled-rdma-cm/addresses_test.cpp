// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// BIND_IP, RESOLVE_IP, RESOLVE_ROUTE, and the options that change them.
#include <endian.h>

#include "tests/unit/dappled-rdma-cm/rig.hpp"

using namespace dapple::dappled::rdma_cm;
using namespace dapple::dappled::rdma_cm::test;

namespace {

struct One {
  Host host{1};
  Channel channel;

  uint32_t create(uint16_t port_space = RDMA_PS_TCP) { return host.create(channel, port_space, 1); }
  int bind(uint32_t id, const sockaddr_in6& address) { return host.bind(channel, id, address); }
};

int setup_one(void** state) {
  *state = new One;
  return 0;
}

int teardown_one(void** state) {
  One* one = static_cast<One*>(*state);
  one->host.service->close(one->host.now, one->channel);
  assert_int_equal(one->host.service->ids(), 0);
  delete one;
  return 0;
}

One& one_of(void** state) {
  return *static_cast<One*>(*state);
}

sockaddr_in6 loopback(uint16_t port) {
  sockaddr_in6 address;
  Address own = loopback_address(AF_INET);
  own.port = port;
  write_address(own, address);
  return address;
}

uint16_t port_of(One& one, uint32_t id) {
  rdma_ucm_query_route_resp route;
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  return ntohs(route.src_addr.sin6_port);
}

void bind__address_of_one_of_several_devices__has_that_device(void** state) {
  One& one = one_of(state);
  dapple::soft::Rails four;
  four.count = 4;
  dapple::soft::Problem problem;
  assert_true(one.host.table.divide(four, one.host.netdevs, problem));
  sockaddr_in6 third = loopback(7174);
  reinterpret_cast<uint8_t*>(&reinterpret_cast<sockaddr_in&>(third).sin_addr)[3] = 3;
  // Programs that have not chosen these devices see no such address.
  assert_int_equal(one.bind(one.create(), third), EADDRNOTAVAIL);
  one.host.seen = four;
  const uint32_t id = one.create();
  assert_int_equal(one.bind(id, third), 0);
  rdma_ucm_query_route_resp route;
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  const auto* device = one.host.table.find(route.ibdev_index);
  assert_non_null(device);
  assert_int_equal(device->rail, 2);
  assert_int_equal(route.node_guid, htobe64(device->guid));
  assert_int_equal(one.bind(one.create(), ipv4(1, 7175)), EADDRNOTAVAIL);
}

void bind__specific_address__has_its_device(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  assert_int_equal(one.bind(id, ipv4(1, 7174)), 0);
  rdma_ucm_query_route_resp route;
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  assert_int_equal(route.node_guid, htobe64(one.host.table.at(0).guid));
  assert_int_equal(route.ibdev_index, one.host.table.at(0).index);
  assert_int_equal(route.port_num, 1);
  assert_int_equal(route.num_paths, 0);
  assert_int_equal(route.src_addr.sin6_family, AF_INET);
  assert_int_equal(route.dst_addr.sin6_family, AF_INET);
  assert_int_equal(port_of(one, id), 7174);
}

void bind__any_address__has_none(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  assert_int_equal(one.bind(id, any_ipv4(7174)), 0);
  rdma_ucm_query_route_resp route;
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  assert_int_equal(route.node_guid, 0);
  assert_int_equal(route.port_num, 0);
}

void bind__loopback__stands_for_all_devices_unless_it_has_the_only_one(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  assert_int_equal(one.bind(id, loopback(7174)), 0);
  rdma_ucm_query_route_resp route;
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  assert_int_equal(route.node_guid, 0);
  assert_int_equal(one.host.listen(one.channel, id), 0);
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  assert_int_equal(route.node_guid, 0);
  // An id that is bound to an address there has the GUID.
  const uint32_t resolved = one.create();
  assert_int_equal(one.bind(resolved, loopback(0)), 0);
  assert_int_equal(one.host.resolve(one.channel, resolved, loopback(7174)), 0);
  one.host.event(one.channel, EventKind::kAddrResolved);
  assert_int_equal(one.host.query(one.channel, resolved, route), 0);
  assert_int_equal(route.ibdev_index, one.host.table.at(1).index);
  one.host.lose_device();
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  assert_int_equal(route.node_guid, htobe64(one.host.table.at(0).guid));
  assert_int_equal(route.ibdev_index, one.host.table.at(0).index);
}

// librdmacm's rsockets use the device of such an id at once.
void bind__loopback_for_datagrams__has_its_device(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create(RDMA_PS_UDP);
  assert_int_equal(one.bind(id, loopback(7174)), 0);
  rdma_ucm_query_route_resp route;
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  assert_int_equal(route.ibdev_index, one.host.table.at(1).index);
}

void bind__wrong_address__is_refused(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  assert_int_equal(one.bind(id, ipv4(9, 7174)), EADDRNOTAVAIL);
  // As in the kernel, the address counts before the port.
  assert_int_equal(one.bind(id, ipv4(9, 80)), EADDRNOTAVAIL);
  one.host.own_error = 0;
  assert_int_equal(one.bind(id, ipv6(9, 7174)), ENODEV);
  sockaddr_in6 ib = {};
  ib.sin6_family = 27;  // AF_IB
  assert_int_equal(one.bind(id, ib), EINVAL);
  sockaddr_in6 link_local = any_ipv6(7174);
  link_local.sin6_addr.s6_addr[0] = 0xFE;
  link_local.sin6_addr.s6_addr[1] = 0x80;
  link_local.sin6_addr.s6_addr[15] = 1;
  assert_int_equal(one.bind(id, link_local), EINVAL);
  assert_int_equal(one.bind(id, ipv4(1, 80)), EACCES);
  assert_int_equal(one.bind(id, ipv4(1, 7174)), 0);
  assert_int_equal(one.bind(id, ipv4(1, 7174)), EINVAL);
}

void bind__port_0__finds_a_free_one(void** state) {
  One& one = one_of(state);
  uint16_t seen[50];
  for (uint32_t i = 0; i < 50; i++) {
    const uint32_t id = one.create();
    assert_int_equal(one.bind(id, any_ipv4(0)), 0);
    seen[i] = port_of(one, id);
    assert_in_range(seen[i], 32768, 60999);
    for (uint32_t j = 0; j < i; j++) assert_int_not_equal(seen[i], seen[j]);
  }
}

void bind__port_in_use__is_refused_as_in_the_kernel(void** state) {
  One& one = one_of(state);
  const uint32_t specific = one.create();
  assert_int_equal(one.bind(specific, ipv4(1, 7174)), 0);
  const uint32_t other = one.create();
  assert_int_equal(one.bind(other, ipv4(1, 7174)), EADDRINUSE);
  assert_int_equal(one.bind(other, any_ipv4(7174)), EADDRNOTAVAIL);
  // Another family, unless both ids are for both families.
  const uint32_t ipv6_id = one.create();
  assert_int_equal(one.host.option(one.channel, ipv6_id, RDMA_OPTION_ID_AFONLY, 1), 0);
  assert_int_equal(one.bind(ipv6_id, any_ipv6(7174)), 0);
  const uint32_t both = one.create();
  assert_int_equal(one.bind(both, any_ipv6(7174)), EADDRNOTAVAIL);
  // Another port space.
  const uint32_t datagrams = one.create(RDMA_PS_UDP);
  assert_int_equal(one.bind(datagrams, ipv4(1, 7174)), 0);
  // A destroyed id gives its port back.
  assert_int_equal(one.host.destroy(one.channel, specific), 0);
  assert_int_equal(one.bind(other, ipv4(1, 7174)), 0);
}

void bind__ipv6_alone_by_the_systems_setting__leaves_ipv4_the_port(void** state) {
  One& one = one_of(state);
  assert_int_equal(one.bind(one.create(), any_ipv4(7174)), 0);
  const uint32_t both = one.create();
  assert_int_equal(one.bind(both, any_ipv6(7174)), EADDRNOTAVAIL);
  one.host.ipv6_alone = true;
  assert_int_equal(one.bind(both, any_ipv6(7174)), 0);
  // The program's own choice counts more.
  const uint32_t other = one.create();
  assert_int_equal(one.host.option(one.channel, other, RDMA_OPTION_ID_AFONLY, 0), 0);
  assert_int_equal(one.bind(one.create(), any_ipv4(7175)), 0);
  assert_int_equal(one.bind(other, any_ipv6(7175)), EADDRNOTAVAIL);
}

void reuseaddr__on_both__shares_until_one_listens(void** state) {
  One& one = one_of(state);
  uint32_t ids[3];
  for (uint32_t& id : ids) {
    id = one.create();
    assert_int_equal(one.host.option(one.channel, id, RDMA_OPTION_ID_REUSEADDR, 1), 0);
  }
  assert_int_equal(one.bind(ids[0], any_ipv4(7174)), 0);
  assert_int_equal(one.bind(ids[1], any_ipv4(7174)), 0);
  assert_int_equal(one.host.listen(one.channel, ids[0]), EADDRNOTAVAIL);
  assert_int_equal(one.host.destroy(one.channel, ids[1]), 0);
  assert_int_equal(one.host.listen(one.channel, ids[0]), 0);
  assert_int_equal(one.bind(ids[2], any_ipv4(7174)), EADDRNOTAVAIL);
  assert_int_equal(one.host.option(one.channel, ids[0], RDMA_OPTION_ID_REUSEADDR, 1), EINVAL);
}

void listen__unbound__binds_to_any(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  assert_int_equal(one.host.listen(one.channel, id), 0);
  assert_int_not_equal(port_of(one, id), 0);
  assert_int_equal(one.host.listen(one.channel, id), EINVAL);
}

void resolve__without_source__binds_by_the_route(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  assert_int_equal(one.host.resolve(one.channel, id, ipv6(2, 7174)), 0);
  one.host.event(one.channel, EventKind::kAddrResolved);
  rdma_ucm_query_route_resp route;
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  assert_int_equal(route.src_addr.sin6_family, AF_INET6);
  assert_int_equal(route.src_addr.sin6_addr.s6_addr[15], 1);
  assert_int_not_equal(route.src_addr.sin6_port, 0);
  assert_int_equal(route.dst_addr.sin6_port, htons(7174));
  assert_int_equal(route.num_paths, 0);
  assert_int_equal(one.host.resolve(one.channel, id, ipv6(2, 7174)), EINVAL);
}

void resolve__failures__as_in_the_kernel(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  one.host.route_error = ENETUNREACH;
  assert_int_equal(one.host.resolve(one.channel, id, ipv4(2, 7174)), ENETUNREACH);
  one.host.route_error = 0;
  // The id is bound now.
  assert_int_equal(one.host.resolve(one.channel, id, ipv6(2, 7174)), EINVAL);
  assert_int_equal(one.host.resolve_route(one.channel, id), EINVAL);
  assert_int_equal(one.host.resolve(one.channel, id, ipv4(2, 7174)), 0);
  one.host.event(one.channel, EventKind::kAddrResolved);
}

void resolve__address_of_no_device__is_an_error_event(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  // The route leads over lo, whose device has no IPv6 address here.
  sockaddr_in6 self = any_ipv6(7174);
  self.sin6_addr.s6_addr[15] = 1;
  assert_int_equal(one.host.resolve(one.channel, id, self), 0);
  const auto event = one.host.event(one.channel, EventKind::kAddrError);
  assert_int_equal(static_cast<int>(event.status), -ENODEV);
  assert_int_equal(one.host.resolve_route(one.channel, id), EINVAL);
}

void resolve__any__is_oneself(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  assert_int_equal(one.host.resolve(one.channel, id, any_ipv4(7174)), 0);
  one.host.event(one.channel, EventKind::kAddrResolved);
  rdma_ucm_query_route_resp route;
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  assert_int_equal(route.ibdev_index, one.host.table.at(1).index);
}

void resolve_route__path__as_the_kernels(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  assert_int_equal(one.host.option(one.channel, id, RDMA_OPTION_ID_TOS, uint8_t{0x68}), 0);
  assert_int_equal(one.host.resolve(one.channel, id, ipv4(2, 7174)), 0);
  assert_int_equal(one.host.resolve_route(one.channel, id), 0);
  one.host.event(one.channel, EventKind::kAddrResolved);
  one.host.event(one.channel, EventKind::kRouteResolved);
  rdma_ucm_query_route_resp route;
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  assert_int_equal(route.num_paths, 1);
  const ib_user_path_rec& path = route.ib_route[0];
  assert_int_equal(path.sgid[15], 1);
  assert_int_equal(path.dgid[15], 2);
  assert_int_equal(path.mtu, IBV_MTU_1024);
  assert_int_equal(path.pkey, 0xFFFF);
  assert_int_equal(path.traffic_class, 0x68);
  assert_int_equal(path.sl, 3);
  assert_int_equal(path.hop_limit, 64);
  assert_int_equal(path.packet_life_time, 16);
  assert_int_equal(path.packet_life_time_selector, 2);
  assert_int_equal(one.host.resolve_route(one.channel, id), EINVAL);
}

int set_paths(One& one, uint32_t id, std::span<const uint8_t> records) {
  rdma_ucm_set_option command = {};
  command.id = id;
  command.level = RDMA_OPTION_IB;
  command.optname = RDMA_OPTION_IB_PATH;
  command.optlen = static_cast<uint32_t>(records.size());
  const auto bytes = std::span(reinterpret_cast<const uint8_t*>(&command), sizeof command);
  return one.host.exchange(one.channel, RDMA_USER_CM_CMD_SET_OPTION, bytes, {}, nullptr, records);
}

// Of a program that brings its own path records instead of calling rdma_resolve_route().
void set_paths__primary_path__resolves_the_route(void** state) {
  One& one = one_of(state);
  ib_path_rec_data records[2] = {};
  const auto bytes = std::span(reinterpret_cast<const uint8_t*>(records), sizeof records);
  const uint32_t id = one.create();
  records[1].flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
  assert_int_equal(set_paths(one, id, bytes), EINVAL);
  assert_int_equal(one.host.resolve(one.channel, id, ipv4(2, 7174)), 0);
  one.host.event(one.channel, EventKind::kAddrResolved);
  assert_int_equal(set_paths(one, id, bytes.first(sizeof records - 1)), EINVAL);
  assert_int_equal(set_paths(one, id, bytes.first(sizeof records[0])), EINVAL);
  assert_int_equal(set_paths(one, id, {}), EINVAL);
  one.host.assert_no_event(one.channel);
  assert_int_equal(set_paths(one, id, bytes), 0);
  one.host.event(one.channel, EventKind::kRouteResolved);
  rdma_ucm_query_route_resp route;
  assert_int_equal(one.host.query(one.channel, id, route), 0);
  assert_int_equal(route.num_paths, 1);
  assert_int_equal(route.ib_route[0].dgid[15], 2);
  assert_int_equal(set_paths(one, id, bytes), EINVAL);
  assert_int_equal(one.host.connect(one.channel, id, parameters(1)), 0);
}

void options__wrong_size_or_state__are_refused(void** state) {
  One& one = one_of(state);
  const uint32_t id = one.create();
  const uint8_t bytes[8] = {};
  assert_int_equal(one.host.option(one.channel, id, RDMA_OPTION_ID_TOS, std::span(bytes, 4)), EINVAL);
  assert_int_equal(one.host.option(one.channel, id, RDMA_OPTION_ID_REUSEADDR, std::span(bytes, 1)), EINVAL);
  assert_int_equal(one.host.option(one.channel, id, RDMA_OPTION_ID_AFONLY, std::span(bytes, 8)), EINVAL);
  assert_int_equal(one.host.option(one.channel, id, RDMA_OPTION_ID_ACK_TIMEOUT, std::span(bytes, 0)), EINVAL);
  assert_int_equal(one.host.option(one.channel, id, 99, std::span(bytes, 4)), ENOSYS);
  const uint32_t datagrams = one.create(RDMA_PS_UDP);
  assert_int_equal(one.host.option(one.channel, datagrams, RDMA_OPTION_ID_ACK_TIMEOUT, uint8_t{1}), EINVAL);
  assert_int_equal(one.host.listen(one.channel, id), 0);
  assert_int_equal(one.host.option(one.channel, id, RDMA_OPTION_ID_AFONLY, 1), EINVAL);
}

// Runs up to the accepted request of a client with that time-out.
void accept_with_timeout(Pair& pair, uint8_t timeout) {
  pair.listen();
  pair.connecting = pair.client.create(pair.active, RDMA_PS_TCP, 11);
  assert_int_equal(pair.client.option(pair.active, pair.connecting, RDMA_OPTION_ID_ACK_TIMEOUT, timeout), 0);
  assert_int_equal(pair.client.resolve(pair.active, pair.connecting, ipv4(2, 7174)), 0);
  assert_int_equal(pair.client.resolve_route(pair.active, pair.connecting), 0);
  pair.client.event(pair.active, EventKind::kAddrResolved);
  pair.client.event(pair.active, EventKind::kRouteResolved);
  rdma_ucm_query_route_resp route;
  assert_int_equal(pair.client.query(pair.active, pair.connecting, route), 0);
  assert_int_equal(route.ib_route[0].packet_life_time, timeout - 1);
  assert_int_equal(pair.client.connect(pair.active, pair.connecting, parameters(1)), 0);
  pair.carry();
  pair.accepted = pair.server.event(pair.passive, EventKind::kConnectRequest).id;
  assert_int_equal(pair.server.accept(pair.passive, pair.accepted, 22, parameters(2)), 0);
  pair.carry();
}

void ack_timeout__set__is_in_the_attributes(void** state) {
  Pair& pair = pair_of(state);
  accept_with_timeout(pair, 21);
  ib_uverbs_qp_attr attributes;
  assert_int_equal(pair.client.attributes(pair.active, pair.connecting, IBV_QPS_RTS, attributes), 0);
  assert_int_equal(attributes.timeout, 21);
}

// As in the kernel, the request's time-out allows for the delay of the device, 2^15, too.
void ack_timeout__short__the_peer_allows_for_the_delay(void**) {
  constexpr uint8_t cases[][2] = {{1, 15}, {13, 15}, {14, 16}, {15, 16}, {16, 17}, {17, 17}};
  for (const auto& [set, expected] : cases) {
    Pair pair;
    accept_with_timeout(pair, set);
    ib_uverbs_qp_attr attributes;
    assert_int_equal(pair.server.attributes(pair.passive, pair.accepted, IBV_QPS_RTS, attributes), 0);
    assert_int_equal(attributes.timeout, expected);
    pair.finish();
  }
}

}  // namespace

#define ONE_TEST(function) cmocka_unit_test_setup_teardown(function, setup_one, teardown_one)

int main() {
  const CMUnitTest tests[] = {
      ONE_TEST(bind__specific_address__has_its_device),
      ONE_TEST(bind__address_of_one_of_several_devices__has_that_device),
      ONE_TEST(bind__any_address__has_none),
      ONE_TEST(bind__loopback__stands_for_all_devices_unless_it_has_the_only_one),
      ONE_TEST(bind__loopback_for_datagrams__has_its_device),
      ONE_TEST(bind__wrong_address__is_refused),
      ONE_TEST(bind__port_0__finds_a_free_one),
      ONE_TEST(bind__port_in_use__is_refused_as_in_the_kernel),
      ONE_TEST(bind__ipv6_alone_by_the_systems_setting__leaves_ipv4_the_port),
      ONE_TEST(reuseaddr__on_both__shares_until_one_listens),
      ONE_TEST(listen__unbound__binds_to_any),
      ONE_TEST(resolve__without_source__binds_by_the_route),
      ONE_TEST(resolve__failures__as_in_the_kernel),
      ONE_TEST(resolve__address_of_no_device__is_an_error_event),
      ONE_TEST(resolve__any__is_oneself),
      ONE_TEST(resolve_route__path__as_the_kernels),
      ONE_TEST(set_paths__primary_path__resolves_the_route),
      ONE_TEST(options__wrong_size_or_state__are_refused),
      RDMA_CM_TEST(ack_timeout__set__is_in_the_attributes),
      cmocka_unit_test(ack_timeout__short__the_peer_allows_for_the_delay),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
