// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Eight devices on one network device. Runs under dapple-run --as connectx7:8,name=rail%d,numa=0,1. With the word
// "link", the environment has the plan link@1=2s.
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <string>

#include "provider/network/gid.hpp"
#include "tests/native/kills/watcher.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/pair.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint32_t kRails = 8;
constexpr uint8_t kIpv4Index = 3;  // behind RoCE v1's, as on a ConnectX
constexpr uint32_t kMessages = 20, kBytes = 1000;

ibv_context* rails[kRails];

ibv_gid address_of(uint32_t rail) {
  const uint8_t address[4] = {127, 0, 0, static_cast<uint8_t>(rail + 1)};
  ibv_gid gid;
  soft::ipv4_gid(address, gid.raw);
  return gid;
}

int open_rails(void**) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr || count != kRails) return -1;
  for (int i = 0; i < count; i++) {
    unsigned number = 0;
    if (sscanf(ibv_get_device_name(list[i]), "rail%u", &number) != 1 || number >= kRails || rails[number] != nullptr)
      return -1;
    rails[number] = ibv_open_device(list[i]);
    if (rails[number] == nullptr) return -1;
  }
  ibv_free_device_list(list);
  return 0;
}

int close_rails(void**) {
  int error = 0;
  for (ibv_context* rail : rails) error |= ibv_close_device(rail);
  return error;
}

// One end of a connection, on a rail.
struct RailEnd {
  ibv_pd* pd;
  End end;
};

RailEnd ends[2];

void make_end(RailEnd& made, uint32_t rail, ibv_qp_type type) {
  made.pd = ibv_alloc_pd(rails[rail]);
  assert_non_null(made.pd);
  made.end.mr = ibv_reg_mr(made.pd, made.end.buffer, kBufferSize, kPeerRights);
  made.end.cq = ibv_create_cq(rails[rail], 2 * kDepth, nullptr, nullptr, 0);
  assert_true(made.end.mr != nullptr && made.end.cq != nullptr);
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = made.end.cq;
  attr.cap = {kDepth, kDepth, 1, 1, 0};
  attr.qp_type = type;
  made.end.qp = ibv_create_qp(made.pd, &attr);
  assert_non_null(made.end.qp);
}

void drop_end(RailEnd& made) {
  assert_int_equal(ibv_destroy_qp(made.end.qp), 0);
  assert_int_equal(ibv_destroy_cq(made.end.cq), 0);
  assert_int_equal(ibv_dereg_mr(made.end.mr), 0);
  assert_int_equal(ibv_dealloc_pd(made.pd), 0);
}

void make_ends(uint32_t from, uint32_t to, uint8_t timeout = 14, ibv_qp_type type = IBV_QPT_RC) {
  make_end(ends[0], from, type);
  make_end(ends[1], to, type);
  assert_true(connect(ends[0].end.qp, ends[1].end.qp->qp_num, timeout, kIpv4Index, address_of(to)));
  assert_true(connect(ends[1].end.qp, ends[0].end.qp->qp_num, timeout, kIpv4Index, address_of(from)));
}

void drop_ends() {
  for (RailEnd& each : ends) drop_end(each);
}

void expect_success(ibv_cq* cq, uint64_t id) {
  ibv_wc completion;
  assert_true(wait_for(cq, completion));
  assert_int_equal(completion.status, IBV_WC_SUCCESS);
  assert_int_equal(completion.wr_id, id);
}

// Messages there and back.
void ping_pong() {
  End &a = ends[0].end, &b = ends[1].end;
  for (uint64_t i = 0; i < kMessages; i++) {
    memset(a.buffer, static_cast<int>('a' + i), kBytes);
    assert_int_equal(post_receive(b, i, kBytes, kBytes), 0);
    assert_int_equal(post_receive(a, i, kBytes, kBytes), 0);
    assert_int_equal(post_send(a, 100 + i, IBV_WR_SEND, 0, kBytes), 0);
    expect_success(a.cq, 100 + i);
    expect_success(b.cq, i);
    assert_memory_equal(b.buffer + kBytes, a.buffer, kBytes);
    assert_int_equal(post_send(b, 200 + i, IBV_WR_SEND, kBytes, kBytes), 0);
    expect_success(b.cq, 200 + i);
    expect_success(a.cq, i);
    assert_memory_equal(a.buffer + kBytes, a.buffer, kBytes);
  }
}

std::string text_of(uint32_t rail, const char* file) {
  const std::string path = "/sys/class/infiniband/rail" + std::to_string(rail) + '/' + file;
  char text[128] = "";
  FILE* stream = fopen(path.c_str(), "re");
  if (stream == nullptr) return "missing";
  const size_t size = fread(text, 1, sizeof text - 1, stream);
  fclose(stream);
  return {text, size};
}

uint64_t received_by(uint32_t rail) {
  return strtoull(text_of(rail, "ports/1/counters/port_rcv_packets").c_str(), nullptr, 10);
}

void devices__each__has_its_own_guid_gids_and_node(void**) {
  for (uint32_t i = 0; i < kRails; i++) {
    ibv_gid_entry entry, other;
    assert_int_equal(ibv_query_gid_ex(rails[i], 1, kIpv4Index, &entry, 0), 0);
    assert_memory_equal(entry.gid.raw, address_of(i).raw, 16);
    assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
    assert_int_equal(ibv_query_gid_ex(rails[i], 1, 1, &entry, 0), 0);
    assert_true(soft::is_link_local(entry.gid.raw));
    for (uint32_t k = 0; k < i; k++) {
      assert_int_equal(ibv_query_gid_ex(rails[k], 1, 1, &other, 0), 0);
      assert_memory_not_equal(entry.gid.raw, other.gid.raw, 16);
      assert_true(ibv_get_device_guid(rails[i]->device) != ibv_get_device_guid(rails[k]->device));
    }
    assert_string_equal(text_of(i, "device/numa_node").c_str(), i % 2 == 0 ? "0\n" : "1\n");
    assert_string_equal(text_of(i, "ports/1/gid_attrs/ndevs/3").c_str(), "lo\n");
  }
}

void messages__between_two_devices__arrive_and_count_there(void**) {
  uint64_t before[kRails];
  for (uint32_t i = 0; i < kRails; i++) before[i] = received_by(i);
  make_ends(0, 3);
  ping_pong();
  End &a = ends[0].end, &b = ends[1].end;
  // Direct copies, if they are possible, and atomics.
  strcpy(a.buffer, "written");
  assert_int_equal(post_send(a, 1, IBV_WR_RDMA_WRITE, 0, 8, &b, 4096), 0);
  expect_success(a.cq, 1);
  assert_string_equal(b.buffer + 4096, "written");
  assert_int_equal(post_send(a, 2, IBV_WR_RDMA_READ, 64, 8, &b, 4096), 0);
  expect_success(a.cq, 2);
  assert_string_equal(a.buffer + 64, "written");
  drop_ends();
  for (uint32_t i = 0; i < kRails; i++) {
    const uint64_t received = received_by(i) - before[i];
    if (i == 0 || i == 3) {
      assert_true(received >= kMessages);
    } else {
      assert_int_equal(received, 0);
    }
  }
}

void messages__between_all_pairs__arrive(void**) {
  for (uint32_t from = 0; from < kRails; from++) {
    make_ends(from, (from * 3 + 1) % kRails);
    ping_pong();
    drop_ends();
  }
}

void datagrams__between_two_devices__arrive(void**) {
  make_ends(5, 6, 14, IBV_QPT_UD);
  ibv_ah_attr attr = {};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.sgid_index = kIpv4Index;
  attr.grh.dgid = address_of(6);
  ibv_ah* to = ibv_create_ah(ends[0].pd, &attr);
  assert_non_null(to);
  End &a = ends[0].end, &b = ends[1].end;
  strcpy(a.buffer, "datagram");
  assert_int_equal(post_receive(b, 1, 0, 2048), 0);
  assert_int_equal(post_datagram(a, 16, a.qp, to, b.qp), 0);
  ibv_wc completion;
  assert_true(wait_for(b.cq, completion));
  assert_int_equal(completion.status, IBV_WC_SUCCESS);
  assert_string_equal(b.buffer + 40, "datagram");
  assert_int_equal(ibv_destroy_ah(to), 0);
  drop_ends();
}

void same_devices__after_dappled_was_killed(void**) {
  Watcher watcher;
  make_ends(2, 7);
  ping_pong();
  assert_true(watcher.kill_dappled());
  ping_pong();
  devices__each__has_its_own_guid_gids_and_node(nullptr);
  ping_pong();
  drop_ends();
}

sockaddr_in socket_address(uint32_t rail, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + rail);
  return address;
}

rdma_cm_event* expect_event(rdma_event_channel* channel, rdma_cm_event_type type) {
  rdma_cm_event* event = nullptr;
  assert_int_equal(rdma_get_cm_event(channel, &event), 0);
  assert_int_equal(event->event, type);
  return event;
}

void take_event(rdma_event_channel* channel, rdma_cm_event_type type) {
  assert_int_equal(rdma_ack_cm_event(expect_event(channel, type)), 0);
}

void assert_on(const rdma_cm_id* id, uint32_t rail) {
  assert_non_null(id->verbs);
  const std::string name = "rail" + std::to_string(rail);
  assert_string_equal(ibv_get_device_name(id->verbs->device), name.c_str());
}

void make_qp(rdma_cm_id* id) {
  ibv_qp_init_attr attr = {};
  attr.cap = {4, 4, 1, 1, 0};
  attr.qp_type = IBV_QPT_RC;
  assert_int_equal(rdma_create_qp(id, nullptr, &attr), 0);
}

// A server on one rail, or on all, and a client that connects to it from another rail.
void connect_by_cm(bool listens_on_all, uint32_t from, uint32_t to, uint16_t port) {
  rdma_event_channel *servers = rdma_create_event_channel(), *clients = rdma_create_event_channel();
  rdma_cm_id *listener = nullptr, *client = nullptr;
  assert_int_equal(rdma_create_id(servers, &listener, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in own = socket_address(to, port), source = socket_address(from, 0), destination = own;
  if (listens_on_all) own.sin_addr.s_addr = htonl(INADDR_ANY);
  assert_int_equal(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&own)), 0);
  if (!listens_on_all) assert_on(listener, to);
  assert_int_equal(rdma_listen(listener, 4), 0);
  assert_int_equal(rdma_create_id(clients, &client, nullptr, RDMA_PS_TCP), 0);
  assert_int_equal(
      rdma_resolve_addr(client, reinterpret_cast<sockaddr*>(&source), reinterpret_cast<sockaddr*>(&destination), 5000),
      0);
  take_event(clients, RDMA_CM_EVENT_ADDR_RESOLVED);
  assert_on(client, from);
  assert_int_equal(rdma_resolve_route(client, 5000), 0);
  take_event(clients, RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_qp(client);
  rdma_conn_param parameters = {};
  assert_int_equal(rdma_connect(client, &parameters), 0);
  rdma_cm_event* event = expect_event(servers, RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_cm_id* server = event->id;
  assert_int_equal(rdma_ack_cm_event(event), 0);
  assert_on(server, to);
  make_qp(server);
  char room[64] = "", message[64] = "by rdma_cm";
  ibv_mr* received = ibv_reg_mr(server->pd, room, sizeof room, int{IBV_ACCESS_LOCAL_WRITE});
  ibv_mr* sent = ibv_reg_mr(client->pd, message, sizeof message, int{IBV_ACCESS_LOCAL_WRITE});
  assert_true(received != nullptr && sent != nullptr);
  assert_int_equal(rdma_post_recv(server, nullptr, room, sizeof room, received), 0);
  assert_int_equal(rdma_accept(server, &parameters), 0);
  take_event(clients, RDMA_CM_EVENT_ESTABLISHED);
  take_event(servers, RDMA_CM_EVENT_ESTABLISHED);
  assert_int_equal(rdma_post_send(client, nullptr, message, sizeof message, sent, IBV_SEND_SIGNALED), 0);
  ibv_wc completion;
  assert_true(wait_for(server->recv_cq, completion));
  assert_int_equal(completion.status, IBV_WC_SUCCESS);
  assert_string_equal(room, "by rdma_cm");
  assert_int_equal(rdma_disconnect(client), 0);
  take_event(clients, RDMA_CM_EVENT_DISCONNECTED);
  take_event(servers, RDMA_CM_EVENT_DISCONNECTED);
  for (ibv_mr* region : {received, sent}) assert_int_equal(ibv_dereg_mr(region), 0);
  for (rdma_cm_id* id : {client, server}) rdma_destroy_qp(id);
  for (rdma_cm_id* id : {client, server, listener}) assert_int_equal(rdma_destroy_id(id), 0);
  for (rdma_event_channel* channel : {servers, clients}) rdma_destroy_event_channel(channel);
}

void rdma_cm__bound_to_an_address__has_its_device(void**) {
  connect_by_cm(false, 1, 2, 7300);
  connect_by_cm(true, 7, 5, 7301);
  connect_by_cm(false, 3, 3, 7302);
}

void rdma_cm__address_of_no_device__is_refused(void**) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  assert_int_equal(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in ninth = socket_address(kRails, 7303);
  assert_int_equal(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&ninth)), -1);
  assert_int_equal(errno, ENODEV);
  assert_int_equal(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(channel);
}

ibv_port_state state_of(uint32_t rail) {
  ibv_port_attr attr;
  assert_int_equal(ibv_query_port(rails[rail], 1, &attr), 0);
  return attr.state;
}

// The thread that takes the port down by plan may be another one than this, which polls the completion.
void wait_until_down(uint32_t rail) {
  for (int i = 0; i < 5000 && state_of(rail) != IBV_PORT_DOWN; i++) usleep(200);
  assert_int_equal(state_of(rail), IBV_PORT_DOWN);
}

// The first completion takes down the port of its own device.
void link__down_on_one_device__others_go_on(void**) {
  make_ends(4, 4, 10);
  assert_int_equal(post_send(ends[0].end, 1, IBV_WR_RDMA_WRITE, 0, 8, &ends[1].end), 0);
  expect_success(ends[0].end.cq, 1);
  wait_until_down(4);
  for (uint32_t i = 0; i < kRails; i++) assert_int_equal(state_of(i), i == 4 ? IBV_PORT_DOWN : IBV_PORT_ACTIVE);
  assert_int_equal(post_send(ends[0].end, 2, IBV_WR_RDMA_WRITE, 0, 8, &ends[1].end), 0);
  ibv_wc completion;
  assert_true(wait_for(ends[0].end.cq, completion));
  assert_int_equal(completion.status, IBV_WC_RETRY_EXC_ERR);
  drop_ends();
  make_ends(0, 5);
  ping_pong();
  drop_ends();
  // To the device whose port is down.
  assert_int_equal(state_of(4), IBV_PORT_DOWN);
  make_ends(0, 4, 10);
  assert_int_equal(post_send(ends[0].end, 1, IBV_WR_RDMA_WRITE, 0, 8, &ends[1].end), 0);
  assert_true(wait_for(ends[0].end.cq, completion));
  assert_int_equal(completion.status, IBV_WC_RETRY_EXC_ERR);
  drop_ends();
}

}  // namespace

int main(int argc, char** argv) {
  need_new_namespace();
  const CMUnitTest link[] = {cmocka_unit_test(link__down_on_one_device__others_go_on)};
  if (argc > 1 && strcmp(argv[1], "link") == 0) return cmocka_run_group_tests(link, open_rails, close_rails);
  const CMUnitTest tests[] = {
      cmocka_unit_test(devices__each__has_its_own_guid_gids_and_node),
      cmocka_unit_test(messages__between_two_devices__arrive_and_count_there),
      cmocka_unit_test(messages__between_all_pairs__arrive),
      cmocka_unit_test(datagrams__between_two_devices__arrive),
      cmocka_unit_test(rdma_cm__bound_to_an_address__has_its_device),
      cmocka_unit_test(rdma_cm__address_of_no_device__is_refused),
      cmocka_unit_test(same_devices__after_dappled_was_killed),
  };
  return cmocka_run_group_tests(tests, open_rails, close_rails);
}
