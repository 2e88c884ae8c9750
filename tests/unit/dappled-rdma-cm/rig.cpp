// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/dappled-rdma-cm/rig.hpp"

#include <algorithm>

#include "provider/network/gid.hpp"

namespace dapple::dappled::rdma_cm::test {
namespace {

Netdev netdev(uint32_t index, const char* name) {
  Netdev made;
  made.index = index;
  made.up = made.ethernet = true;
  made.mtu = 1500;
  strcpy(made.name, name);
  return made;
}

void add_ipv4(Netdev& netdev, uint8_t first, uint8_t last) {
  const uint8_t bytes[4] = {first, 0, 0, last};
  soft::ipv4_gid(bytes, netdev.addresses[netdev.address_count++]);
}

template <class Command>
Command with_id(uint32_t id) {
  Command command = {};
  command.id = id;
  return command;
}

}  // namespace

Host::Host(uint8_t number) : table(number), number_(number), random_(number * 0x9E3779B97F4A7C15ULL) {
  netdevs.count = 2;
  netdevs.devices[0] = netdev(1, "lo");
  netdevs.devices[0].loopback = true;
  netdevs.devices[0].ethernet = false;
  netdevs.devices[0].mtu = 65536;
  add_ipv4(netdevs.devices[0], 127, 1);
  netdevs.devices[1] = netdev(2, "eth0");
  add_ipv4(netdevs.devices[1], 10, number);
  uint8_t* gid = netdevs.devices[1].addresses[netdevs.devices[1].address_count++];
  gid[0] = 0xFD;
  gid[15] = number;
  table.update(netdevs);
  service = Service::create(*this, {});
  assert_non_null(service.get());
}

void Host::lose_device() {
  netdevs.count = 1;
  table.update(netdevs);
  service->refresh_devices();
}

uint64_t Host::random() {
  // xorshift64*
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return random_ * 0x2545F4914F6CDD1DULL;
}

int Host::route(const Channel&, const Address& destination, Address& source) {
  if (route_error != 0) return route_error;
  asked_route = destination;
  if (!source.is_any()) return 0;
  const uint16_t port = source.port;
  const bool loopback = destination.same_host(loopback_address(destination.family));
  const sockaddr_in6 own = destination.family == AF_INET6 ? ipv6(number_, 0) : ipv4(number_, 0);
  if (loopback) {
    source = destination;
  } else {
    read_address(own, source);
  }
  source.port = port;
  return 0;
}

int Host::find_neighbour(const Address&, const Address& destination, Neighbour& neighbour) {
  looks++;
  neighbour = {.netdev_index = 2, .address = destination};
  return neighbour_error;
}

void Host::wake(Channel& channel) {
  assert_true(channel.events.size() > 0);
  wakes++;
  for (Event* event = channel.events.last(); event != nullptr && !event->sent; event = event->older) event->sent = true;
  channel.unsent = 0;
}

void Host::write_journal(Channel& channel, uint32_t place, std::span<const std::byte> entry) {
  auto& journal = journals[&channel];
  if (journal.size() <= place) journal.resize(place + 1);
  journal[place].assign(entry.begin(), entry.end());
}

Host::Journal Host::replace(Channel& channel) {
  // Datagrams to the dead dappled are lost.
  Journal journal = journals[&channel];
  service->close(now, channel);
  out.clear();
  service = Service::create(*this, {});
  assert_non_null(service.get());
  journals[&channel].clear();
  return journal;
}

Restoration Host::restore(Channel& channel, const Journal& journal) {
  Restoration outcome;
  for (const auto& entry : journal) service->restore(now, channel, entry, outcome);
  return outcome;
}

int Host::exchange(Channel& channel, uint32_t number, std::span<const uint8_t> command, std::span<uint8_t> response,
                   Channel* source, std::span<const uint8_t> extra) {
  const rdma_ucm_cmd_hdr header{number, static_cast<uint16_t>(command.size()), static_cast<uint16_t>(response.size())};
  std::vector<uint8_t> bytes(sizeof header);
  memcpy(bytes.data(), &header, sizeof header);
  bytes.insert(bytes.end(), command.begin(), command.end());
  bytes.insert(bytes.end(), extra.begin(), extra.end());
  Service::Answer answer{.response = response};
  const int error = service->command(now, channel, source, bytes, answer, token);
  assert_true(answer.length <= response.size());
  removed = answer.removed.bytes;
  removed_events = answer.removed.events;
  ahead = answer.ahead;
  // The answer has been sent.
  return error;
}

uint32_t Host::create(Channel& channel, uint16_t port_space, uint64_t uid) {
  rdma_ucm_create_id command = {};
  command.uid = uid;
  command.ps = port_space;
  rdma_ucm_create_id_resp response = {};
  assert_int_equal(ask(channel, RDMA_USER_CM_CMD_CREATE_ID, command, response), 0);
  return response.id;
}

int Host::destroy(Channel& channel, uint32_t id, uint32_t* events_reported) {
  rdma_ucm_destroy_id_resp response = {};
  const int error = ask(channel, RDMA_USER_CM_CMD_DESTROY_ID, with_id<rdma_ucm_destroy_id>(id), response);
  if (events_reported != nullptr) *events_reported = response.events_reported;
  return error;
}

int Host::bind(Channel& channel, uint32_t id, const sockaddr_in6& address) {
  auto command_ = with_id<rdma_ucm_bind_ip>(id);
  command_.addr = address;
  return command(channel, RDMA_USER_CM_CMD_BIND_IP, command_);
}

int Host::resolve(Channel& channel, uint32_t id, const sockaddr_in6& destination, uint32_t timeout_ms) {
  auto command_ = with_id<rdma_ucm_resolve_ip>(id);
  command_.dst_addr = destination;
  command_.timeout_ms = timeout_ms;
  return command(channel, RDMA_USER_CM_CMD_RESOLVE_IP, command_);
}

int Host::resolve_route(Channel& channel, uint32_t id) {
  return command(channel, RDMA_USER_CM_CMD_RESOLVE_ROUTE, with_id<rdma_ucm_resolve_route>(id));
}

int Host::listen(Channel& channel, uint32_t id, uint32_t backlog) {
  return command(channel, RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, backlog});
}

int Host::connect(Channel& channel, uint32_t id, const rdma_ucm_conn_param& with) {
  auto command_ = with_id<rdma_ucm_connect>(id);
  command_.conn_param = with;
  return command(channel, RDMA_USER_CM_CMD_CONNECT, command_);
}

int Host::accept(Channel& channel, uint32_t id, uint64_t uid, const rdma_ucm_conn_param& with) {
  auto command_ = with_id<rdma_ucm_accept>(id);
  command_.uid = uid;
  command_.conn_param = with;
  return command(channel, RDMA_USER_CM_CMD_ACCEPT, command_);
}

int Host::disconnect(Channel& channel, uint32_t id) {
  return command(channel, RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{id});
}

int Host::query(Channel& channel, uint32_t id, rdma_ucm_query_route_resp& route) {
  return ask(channel, RDMA_USER_CM_CMD_QUERY_ROUTE, with_id<rdma_ucm_query>(id), route);
}

int Host::attributes(Channel& channel, uint32_t id, ibv_qp_state state, ib_uverbs_qp_attr& attributes) {
  auto command_ = with_id<rdma_ucm_init_qp_attr>(id);
  command_.qp_state = state;
  return ask(channel, RDMA_USER_CM_CMD_INIT_QP_ATTR, command_, attributes);
}

int Host::option(Channel& channel, uint32_t id, uint32_t name, std::span<const uint8_t> value) {
  auto command_ = with_id<rdma_ucm_set_option>(id);
  command_.level = RDMA_OPTION_ID;
  command_.optname = name;
  command_.optlen = static_cast<uint32_t>(value.size());
  const auto bytes = std::span(reinterpret_cast<const uint8_t*>(&command_), sizeof command_);
  return exchange(channel, RDMA_USER_CM_CMD_SET_OPTION, bytes, {}, nullptr, value);
}

rdma_ucm_event_resp Host::event(Channel& channel, EventKind kind) {
  rdma_ucm_event_resp event = {};
  assert_int_equal(ask(channel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, event), 0);
  assert_int_equal(event.event, kind);
  return event;
}

void Host::assert_no_event(Channel& channel) {
  rdma_ucm_event_resp event;
  assert_int_equal(ask(channel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, event), EAGAIN);
}

sockaddr_in6 any_ipv4(uint16_t port) {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  sockaddr_in6 address = {};
  memcpy(&address, &in, sizeof in);
  return address;
}

sockaddr_in6 ipv4(uint8_t last, uint16_t port) {
  sockaddr_in6 address = any_ipv4(port);
  const uint8_t bytes[4] = {10, 0, 0, last};
  memcpy(reinterpret_cast<char*>(&address) + offsetof(sockaddr_in, sin_addr), bytes, sizeof bytes);
  return address;
}

sockaddr_in6 any_ipv6(uint16_t port) {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  return address;
}

sockaddr_in6 ipv6(uint8_t last, uint16_t port) {
  sockaddr_in6 address = any_ipv6(port);
  address.sin6_addr.s6_addr[0] = 0xFD;
  address.sin6_addr.s6_addr[15] = last;
  return address;
}

rdma_ucm_conn_param parameters(uint32_t qpn, uint8_t first_byte, uint8_t private_data_len) {
  rdma_ucm_conn_param made = {};
  made.qp_num = qpn;
  made.responder_resources = 3;
  made.initiator_depth = 5;
  made.retry_count = 6;
  made.rnr_retry_count = 7;
  made.valid = 1;
  made.private_data_len = private_data_len;
  for (uint32_t i = 0; i < private_data_len; i++) made.private_data[i] = static_cast<uint8_t>(first_byte + i);
  return made;
}

void Pair::carry() {
  while (!client.out.empty() || !server.out.empty()) {
    Host& from = client.out.empty() ? server : client;
    Host& to = client.out.empty() ? client : server;
    const Datagram datagram = from.out.front();
    from.out.pop_front();
    const soft::DeviceInfo& device = to.table.at(0);
    to.service->receive(
        to.now,
        {.device = device.index, .ca_guid = device.guid, .local = datagram.path.remote, .remote = datagram.path.local},
        datagram.mad);
  }
}

bool Pair::wait() {
  const Time next = std::min(client.service->deadline(), server.service->deadline());
  if (next == roce::kNever) return false;
  client.now = server.now = std::max(client.now, next);
  client.service->advance(client.now);
  server.service->advance(server.now);
  return true;
}

void Pair::listen(uint16_t port_space) {
  listener = server.create(passive, port_space, 77);
  assert_int_equal(server.bind(passive, listener, any_ipv4(7174)), 0);
  assert_int_equal(server.listen(passive, listener), 0);
}

void Pair::resolve(uint16_t port_space) {
  connecting = client.create(active, port_space, 11);
  assert_int_equal(client.resolve(active, connecting, ipv4(2, 7174)), 0);
  client.event(active, EventKind::kAddrResolved);
  assert_int_equal(client.resolve_route(active, connecting), 0);
  client.event(active, EventKind::kRouteResolved);
}

void Pair::request() {
  listen();
  resolve();
  assert_int_equal(client.connect(active, connecting, parameters(0x10012, 1, 56)), 0);
  carry();
  accepted = server.event(passive, EventKind::kConnectRequest).id;
}

void Pair::respond() {
  request();
  assert_int_equal(server.accept(passive, accepted, 22, parameters(0x20034, 2, 196)), 0);
  carry();
  client.event(active, EventKind::kConnectResponse);
}

void Pair::establish() {
  respond();
  assert_int_equal(client.accept(active, connecting, 11, {}), 0);
  carry();
  server.event(passive, EventKind::kEstablished);
}

void Pair::finish() {
  client.service->close(client.now, active);
  server.service->close(server.now, passive);
  for (Channel* channel : {&active, &passive}) {
    assert_int_equal(channel->ids.size(), 0);
    assert_int_equal(channel->events.size(), 0);
  }
  carry();
  for (int i = 0; i < 1000 && wait(); i++) carry();
  for (const Host* host : {&client, &server}) {
    assert_int_equal(host->service->ids(), 0);
    assert_int_equal(host->service->manager().records(), 0);
  }
}

int setup_pair(void** state) {
  *state = new Pair;
  return 0;
}

int teardown_pair(void** state) {
  Pair* pair = static_cast<Pair*>(*state);
  pair->client.service->close(pair->client.now, pair->active);
  pair->server.service->close(pair->server.now, pair->passive);
  delete pair;
  return 0;
}

}  // namespace dapple::dappled::rdma_cm::test
