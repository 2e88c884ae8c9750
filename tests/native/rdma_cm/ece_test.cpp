// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two ids exchange what their programs say about ECE (rdma_set_local_ece()), without queue pairs of librdmacm's, and
// queue pairs of librdmacm's exchange that of their devices. Runs under dapple-run.
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <initializer_list>

#include "tests/native/namespaces.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::tests;

namespace {

constexpr uint16_t kPort = 7000;
constexpr int kPatience = 30000;  // milliseconds

rdma_event_channel* channel;
rdma_cm_id* listener;
rdma_cm_id* client;
rdma_cm_id* server;

sockaddr_in loopback() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Takes the next event, which must be this one. Returns its id.
rdma_cm_id* expect(rdma_cm_event_type type) {
  pollfd waiting = {channel->fd, POLLIN, 0};
  assert_int_equal(poll(&waiting, 1, kPatience), 1);
  rdma_cm_event* event = nullptr;
  assert_int_equal(rdma_get_cm_event(channel, &event), 0);
  assert_int_equal(event->event, type);
  assert_int_equal(event->status, 0);
  rdma_cm_id* id = event->id;
  assert_int_equal(rdma_ack_cm_event(event), 0);
  return id;
}

int begin(void**) {
  channel = rdma_create_event_channel();
  listener = client = server = nullptr;
  if (channel == nullptr) return -1;
  sockaddr_in address = loopback();
  auto* where = reinterpret_cast<sockaddr*>(&address);
  if (rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP) != 0 || rdma_bind_addr(listener, where) != 0 ||
      rdma_listen(listener, 1) != 0)
    return -1;
  if (rdma_create_id(channel, &client, nullptr, RDMA_PS_TCP) != 0 ||
      rdma_resolve_addr(client, nullptr, where, 2000) != 0)
    return -1;
  expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(client, 2000) != 0) return -1;
  expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
  return 0;
}

int end(void**) {
  for (rdma_cm_id* id : {client, server, listener}) {
    if (id == nullptr) continue;
    if (id->qp != nullptr) rdma_destroy_qp(id);
    rdma_destroy_id(id);
  }
  if (channel != nullptr) rdma_destroy_event_channel(channel);
  return 0;
}

void set_local(rdma_cm_id* id, uint32_t vendor, uint32_t options) {
  ibv_ece ece = {};
  ece.vendor_id = vendor;
  ece.options = options;
  assert_int_equal(rdma_set_local_ece(id, &ece), 0);
}

void assert_remote(rdma_cm_id* id, uint32_t vendor, uint32_t options) {
  ibv_ece ece = {};
  assert_int_equal(rdma_get_remote_ece(id, &ece), 0);
  assert_int_equal(ece.vendor_id, vendor);
  assert_int_equal(ece.options, options);
}

void set_local_ece__comes_to_the_peer(void**) {
  rdma_conn_param parameters = {};
  parameters.qp_num = 0x77;
  set_local(client, 0x2C9, 0x12345678);
  assert_int_equal(rdma_connect(client, &parameters), 0);
  server = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  assert_remote(server, 0x2C9, 0x12345678);
  // librdmacm answers with the peer's vendor.
  set_local(server, 0x2C9, 0x9ABCDEF0);
  parameters.qp_num = 0x78;
  assert_int_equal(rdma_accept(server, &parameters), 0);
  expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  assert_remote(client, 0x2C9, 0x9ABCDEF0);
  assert_int_equal(rdma_establish(client), 0);
  expect(RDMA_CM_EVENT_ESTABLISHED);
}

void set_local_ece__without_it__nothing_comes(void**) {
  rdma_conn_param parameters = {};
  parameters.qp_num = 0x77;
  assert_int_equal(rdma_connect(client, &parameters), 0);
  server = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  assert_remote(server, 0, 0);
}

void make_qp(rdma_cm_id* id) {
  ibv_qp_init_attr attr = {};
  attr.qp_type = IBV_QPT_RC;
  attr.cap = {1, 1, 1, 1, 0};
  assert_int_equal(rdma_create_qp(id, nullptr, &attr), 0);
}

// librdmacm sets what the peer's device tells by ibv_set_ece().
void connect__with_queue_pairs__succeeds(void**) {
  rdma_conn_param parameters = {};
  make_qp(client);
  assert_int_equal(rdma_connect(client, &parameters), 0);
  server = expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  ibv_ece ece = {};
  ibv_device_attr device = {};
  assert_int_equal(rdma_get_remote_ece(server, &ece), 0);
  assert_int_equal(ibv_query_device(server->verbs, &device), 0);
  assert_int_equal(ece.vendor_id, device.vendor_id);
  make_qp(server);
  assert_int_equal(rdma_accept(server, &parameters), 0);
  expect(RDMA_CM_EVENT_ESTABLISHED);
  expect(RDMA_CM_EVENT_ESTABLISHED);
}

}  // namespace

int main() {
  need_new_namespace();
  const CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(set_local_ece__comes_to_the_peer, begin, end),
      cmocka_unit_test_setup_teardown(set_local_ece__without_it__nothing_comes, begin, end),
      cmocka_unit_test_setup_teardown(connect__with_queue_pairs__succeeds, begin, end),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
