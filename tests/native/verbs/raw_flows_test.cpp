// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Flow steering to raw packet queue pairs, between both ends of a veth pair. Runs under dapple-run.
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>
#include <memory>
#include <utility>

#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/leaves_objects.hpp"  // close__ends_what_is_left() does
#include "tests/native/verbs/raw_pair.hpp"
#include "tests/native/verbs/rig.hpp"

using namespace dapple::tests;

namespace {

void frame__its_udp_port_selects_the_queue_pair(void**) {
  assert_true(begin_raw());
  ibv_flow* first = make_flow(receivers[0], udp_flow(kPort));
  ibv_flow* second = make_flow(receivers[1], udp_flow(kOtherPort));
  assert_non_null(first);
  assert_non_null(second);
  assert_int_equal(post_room(*b, receivers[0], 0, 0), 0);
  assert_int_equal(post_room(*b, receivers[1], 1, 1), 0);
  send_udp(kForeignPort, 100, 'x');
  send_udp(kOtherPort, 1472, 'y');
  send_udp(kPort, 3, 'z');
  expect_udp(1, receivers[1], 1472, 'y');
  expect_udp(0, receivers[0], 3, 'z');
  // Without its flow a queue pair receives nothing.
  assert_int_equal(ibv_destroy_flow(second), 0);
  assert_int_equal(post_room(*b, receivers[1], 2, 2), 0);
  assert_int_equal(post_room(*b, receivers[0], 3, 3), 0);
  send_udp(kOtherPort, 1, 'v');
  send_udp(kPort, 2, 'w');
  expect_udp(3, receivers[0], 2, 'w');
  assert_int_equal(ibv_destroy_flow(first), 0);
}

void flows__the_first_by_priority_takes_the_frame(void**) {
  assert_true(begin_raw());
  UdpFlow all = udp_flow(0, 1);
  all.udp.mask.dst_port = 0;
  ibv_flow* rest = make_flow(receivers[1], all);
  ibv_flow* one = make_flow(receivers[0], udp_flow(kPort, 0));
  assert_non_null(rest);
  assert_non_null(one);
  for (uint32_t i = 0; i < 3; ++i) {
    assert_int_equal(post_room(*b, receivers[0], i, i), 0);
    assert_int_equal(post_room(*b, receivers[1], 3 + i, 3 + i), 0);
  }
  send_udp(kPort, 10, 'a');
  expect_udp(0, receivers[0], 10, 'a');
  send_udp(kOtherPort, 10, 'b');
  expect_udp(3, receivers[1], 10, 'b');
  // Two that want the same get a copy each.
  ibv_flow* same = make_flow(receivers[1], udp_flow(kPort, 0));
  send_udp(kPort, 10, 'c');
  expect_udp(1, receivers[0], 10, 'c');
  expect_udp(4, receivers[1], 10, 'c');
  for (ibv_flow* flow : {rest, one, same}) assert_int_equal(ibv_destroy_flow(flow), 0);
}

// receivers[1] sends a frame to this address. Each mark has a slot of its own.
void send_from_b(const unsigned char (&mac)[6], char mark) {
  const uint32_t slot = kRawSlots / 2 + static_cast<uint32_t>(mark) % (kRawSlots / 2);
  const size_t size = write_udp(b->slot(slot), 5000, kPort, 100, mark);
  memcpy(b->slot(slot), mac, sizeof mac);
  assert_int_equal(post_frame(*b, receivers[1], slot, slot, size, IBV_SEND_IP_CSUM), 0);
}

// Among the frames that the interface itself sends, those to its own address and to groups, and each once.
void frames_of_the_own_interface__loop_back_to_flows(void**) {
  constexpr unsigned char kOwn[] = {2, 0, 0, 0, 0, 0xB}, kForeign[] = {2, 0, 0, 0, 0, 0xA},
                          kNearlyOwn[] = {2, 0, 0, 0, 1, 0xB}, kGroup[] = {1, 0, 0x5E, 1, 2, 3},
                          kAll[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  assert_true(begin_raw());
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  assert_non_null(flow);
  for (uint32_t i = 0; i < 4; ++i) assert_int_equal(post_room(*b, receivers[0], i, i), 0);
  send_from_b(kForeign, 'a');
  send_from_b(kNearlyOwn, 'b');
  send_from_b(kOwn, 'c');
  send_from_b(kGroup, 'd');
  send_from_b(kAll, 'e');
  expect_udp(0, receivers[0], 100, 'c');
  expect_udp(1, receivers[0], 100, 'd');
  expect_udp(2, receivers[0], 100, 'e');
  send_udp(kPort, 3, 'z');
  expect_udp(3, receivers[0], 3, 'z');
  assert_int_equal(ibv_destroy_flow(flow), 0);
}

void frames_of_the_own_interface__loop_back_to_flows_without_specifications(void**) {
  constexpr unsigned char kOwn[] = {2, 0, 0, 0, 0, 0xB}, kForeign[] = {2, 0, 0, 0, 0, 0xA},
                          kGroup[] = {1, 0, 0x5E, 1, 2, 3};
  assert_true(begin_raw());
  ibv_flow_attr attr = {};
  attr.size = sizeof attr;
  attr.port = 1;
  for (const ibv_flow_attr_type type : {IBV_FLOW_ATTR_ALL_DEFAULT, IBV_FLOW_ATTR_MC_DEFAULT, IBV_FLOW_ATTR_SNIFFER}) {
    attr.type = type;
    ibv_flow* flow = ibv_create_flow(receivers[0], &attr);
    assert_non_null(flow);
    for (uint32_t i = 0; i < 2; ++i) assert_int_equal(post_room(*b, receivers[0], i, i), 0);
    const bool only_groups = type == IBV_FLOW_ATTR_MC_DEFAULT;
    send_from_b(kForeign, 'a');
    send_from_b(only_groups ? kGroup : kOwn, 'c');
    send_from_b(kGroup, 'd');
    expect_udp(0, receivers[0], 100, 'c');
    expect_udp(1, receivers[0], 100, 'd');
    assert_int_equal(ibv_destroy_flow(flow), 0);
  }
}

void fork__leaves_the_flows_to_the_parent(void**) {
  assert_true(begin_raw());
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  assert_int_equal(post_room(*b, receivers[0], 0, 0), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = make_flow(receivers[1], udp_flow(kOtherPort)) == nullptr && ibv_destroy_flow(flow) != 0;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  send_udp(kPort, 10, 'f');
  expect_udp(0, receivers[0], 10, 'f');
  assert_int_equal(ibv_destroy_flow(flow), 0);
}

// Tells whether vb takes frames for all addresses.
bool takes_all_frames() {
  return !run("ip -details link show vb | grep -q 'promiscuity 0'");
}

void close__withdraws_what_its_flows_have_asked_the_interface_for(void**) {
  assert_true(begin_raw());
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  auto second = std::make_unique<RawEnd>();
  assert_true(open_end(*second, "vb"));
  ibv_qp* other = make_raw_qp(*second);
  assert_non_null(other);
  assert_false(takes_all_frames());
  ibv_flow_attr all = {};
  all.type = IBV_FLOW_ATTR_ALL_DEFAULT;
  all.size = sizeof all;
  all.port = 1;
  assert_non_null(ibv_create_flow(other, &all));
  assert_true(takes_all_frames());
  assert_int_equal(ibv_close_device(second->context), 0);
  assert_false(takes_all_frames());
  assert_int_equal(ibv_destroy_flow(flow), 0);
}

void close__ends_what_is_left(void**) {
  assert_true(begin_raw());
  assert_non_null(make_flow(receivers[0], udp_flow(kPort)));
  assert_int_equal(ibv_close_device(b->context), 0);
  send_udp(kPort, 10, 'x');
  assert_int_equal(ibv_destroy_qp(sender), 0);
  close_end(*a);
  delete a;
  a = b = nullptr;
  sender = receivers[0] = receivers[1] = nullptr;
}

bool has_device(const char* netdev) {
  const auto end = std::make_unique<RawEnd>();
  const bool has = open_end(*end, netdev);
  close_end(*end);
  return has;
}

void wait_for_device(const char* netdev) {
  for (int i = 0; i < 5000 && !has_device(netdev); i++) usleep(200);
  assert_true(has_device(netdev));
}

// The old queue pairs are still there, with the sockets of interfaces that are gone.
void device__with_the_index_of_an_old_one__has_its_own_frames(void**) {
  assert_true(begin_raw());
  assert_true(run("ip link del va"));
  assert_true(becomes_readable(a->context->async_fd));
  assert_true(becomes_readable(b->context->async_fd));
  // With this list libibverbs forgets the old devices.
  assert_false(has_device("vb"));
  RawEnd* old_ends[] = {std::exchange(a, nullptr), std::exchange(b, nullptr)};
  ibv_qp* old_qps[] = {sender, receivers[0], receivers[1]};
  sender = receivers[0] = receivers[1] = nullptr;
  assert_true(make_veth_ends());
  wait_for_device("va");
  wait_for_device("vb");
  assert_true(begin_raw());
  RawEnd* new_ends[] = {a, b};
  for (int i = 0; i < 2; i++) {
    assert_string_equal(ibv_get_device_name(old_ends[i]->context->device),
                        ibv_get_device_name(new_ends[i]->context->device));
  }
  ibv_flow* flow = make_flow(receivers[0], udp_flow(kPort));
  assert_non_null(flow);
  assert_int_equal(post_room(*b, receivers[0], 0, 0), 0);
  send_udp(kPort, 10, 'n');
  expect_udp(0, receivers[0], 10, 'n');
  assert_int_equal(ibv_destroy_flow(flow), 0);
  for (ibv_qp* qp : old_qps) assert_int_equal(ibv_destroy_qp(qp), 0);
  for (RawEnd* end : old_ends) {
    close_end(*end);
    delete end;
  }
}

// The last test: it removes the interfaces.
void flow__of_an_interface_that_is_gone__fails(void**) {
  assert_true(begin_raw());
  assert_true(run("ip link del va"));
  assert_null(make_flow(receivers[0], udp_flow(kPort)));
  assert_int_equal(errno, ENODEV);
}

}  // namespace

int main(int argc, char**) {
  need_veth_pair();
  const CMUnitTest tests[] = {
      cmocka_unit_test_teardown(frame__its_udp_port_selects_the_queue_pair, end_raw),
      cmocka_unit_test_teardown(flows__the_first_by_priority_takes_the_frame, end_raw),
      cmocka_unit_test_teardown(frames_of_the_own_interface__loop_back_to_flows, end_raw),
      cmocka_unit_test_teardown(frames_of_the_own_interface__loop_back_to_flows_without_specifications, end_raw),
      // What --check reports as a mistake.
      cmocka_unit_test_teardown(fork__leaves_the_flows_to_the_parent, end_raw),
      cmocka_unit_test_teardown(close__withdraws_what_its_flows_have_asked_the_interface_for, end_raw),
      cmocka_unit_test_teardown(close__ends_what_is_left, end_raw),
      cmocka_unit_test_teardown(device__with_the_index_of_an_old_one__has_its_own_frames, end_raw),
      cmocka_unit_test_teardown(flow__of_an_interface_that_is_gone__fails, end_raw),
  };
  constexpr size_t kWithoutMistakes = 4;
  const size_t count = argc > 1 ? kWithoutMistakes : sizeof tests / sizeof *tests;
  return _cmocka_run_group_tests("raw_flows", tests, count, nullptr, nullptr);
}
