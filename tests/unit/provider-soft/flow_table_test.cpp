// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/raw/flow_table.hpp"

#include <arpa/inet.h>
#include <errno.h>

#include <string>

#include "provider/soft/raw/flow_attr.hpp"
#include "tests/unit/provider-soft/udp_frame.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::soft;
using namespace dapple::tests;

namespace {

// The table knows queue pairs by their addresses alone, which are aligned.
struct alignas(256) Named {
  char name;
};
Named names[] = {{'a'}, {'b'}, {'c'}, {'d'}};
Qp* qp(char name) {
  return reinterpret_cast<Qp*>(&names[name - 'a']);
}

FlowEntry entry(char name, ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL, uint16_t priority = 0, uint16_t port = 0) {
  FlowEntry made;
  made.qp = qp(name);
  made.rule.type = type;
  made.rule.priority = priority;
  made.rule.match.transport = port == 0 ? Frame::Transport::kOther : Frame::Transport::kUdp;
  made.rule.match.ports.value.dst_port = htons(port);
  made.rule.match.ports.mask.dst_port = port == 0 ? 0 : 0xFFFF;
  return made;
}

// The names of the queue pairs that get the frame.
std::string steered(const FlowTable& table, FrameBytes bytes) {
  Frame frame;
  assert_true(parse_frame(bytes.all(), frame));
  std::string result;
  table.steer(frame, [&](Qp& to) { result += reinterpret_cast<Named*>(&to)->name; });
  return result;
}

void steer__the_first_by_priority(void**) {
  FlowTable table;
  FlowEntry all = entry('a', IBV_FLOW_ATTR_NORMAL, 2), one = entry('b', IBV_FLOW_ATTR_NORMAL, 1, 7);
  assert_true(table.empty());
  table.add(all);
  table.add(one);
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "b");
  assert_string_equal(steered(table, udp_frame(8)).c_str(), "a");
  table.remove(one);
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "a");
  table.remove(all);
  assert_true(table.empty());
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "");
}

void steer__a_copy_for_each_that_wants_the_same(void**) {
  FlowTable table;
  FlowEntry first = entry('a', IBV_FLOW_ATTR_NORMAL, 1, 7), wider = entry('b', IBV_FLOW_ATTR_NORMAL, 1),
            second = entry('c', IBV_FLOW_ATTR_NORMAL, 1, 7), later = entry('d', IBV_FLOW_ATTR_NORMAL, 2, 7);
  for (FlowEntry* each : {&first, &wider, &second, &later}) table.add(*each);
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "ac");
  assert_string_equal(steered(table, udp_frame(8)).c_str(), "b");
}

void steer__default_flows_get_the_rest(void**) {
  FlowTable table;
  FlowEntry rest = entry('a', IBV_FLOW_ATTR_ALL_DEFAULT), groups = entry('b', IBV_FLOW_ATTR_MC_DEFAULT),
            one = entry('c', IBV_FLOW_ATTR_NORMAL, 15, 7), watcher = entry('d', IBV_FLOW_ATTR_SNIFFER);
  for (FlowEntry* each : {&rest, &groups, &one, &watcher}) table.add(*each);
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "dc");
  assert_string_equal(steered(table, udp_frame(8)).c_str(), "da");
  FrameBytes group = udp_frame(8);
  group.bytes[0] = std::byte{1};
  assert_string_equal(steered(table, group).c_str(), "dab");
  // RoCE's packets are for its queue pairs.
  assert_string_equal(steered(table, udp_frame(4791)).c_str(), "d");
}

// As on mlx5, where a second rule to the same queue pair is the first one.
void steer__one_copy_for_each_queue_pair(void**) {
  FlowTable table;
  FlowEntry flows[] = {entry('a', IBV_FLOW_ATTR_NORMAL, 1, 7), entry('a', IBV_FLOW_ATTR_NORMAL, 1, 7),
                       entry('b', IBV_FLOW_ATTR_NORMAL, 1, 7), entry('a', IBV_FLOW_ATTR_ALL_DEFAULT),
                       entry('a', IBV_FLOW_ATTR_MC_DEFAULT),   entry('b', IBV_FLOW_ATTR_MC_DEFAULT),
                       entry('c', IBV_FLOW_ATTR_SNIFFER),      entry('c', IBV_FLOW_ATTR_SNIFFER)};
  FlowCounters counters[2];
  for (size_t i = 0; i < 2; i++) {
    assert_true(counters[i].attach(FlowCounters::Kind::kPackets, 0));
    flows[i].counters = &counters[i];
  }
  for (FlowEntry& each : flows) table.add(each);
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "cab");
  FrameBytes group = udp_frame(8);
  group.bytes[0] = std::byte{1};
  assert_string_equal(steered(table, group).c_str(), "cab");
  // Each flow counts.
  for (const FlowCounters& each : counters) {
    uint64_t packets = 0;
    each.read({&packets, 1});
    assert_int_equal(packets, 1);
  }
  // Flows of several priorities bring copies.
  flows[0].rule.continues = true;
  table.remove(flows[1]);
  flows[1].rule.priority = 2;
  table.add(flows[1]);
  table.remove(flows[2]);
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "caa");
}

// A frame that a dropping flow matches goes to no queue pair by it, and another flow may still take it.
void steer__a_drop_is_no_copy(void**) {
  FlowTable table;
  FlowEntry drop = entry('a', IBV_FLOW_ATTR_NORMAL, 1, 7), same = entry('a', IBV_FLOW_ATTR_NORMAL, 1, 7);
  drop.rule.drops = true;
  table.add(drop);
  table.add(same);
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "a");
}

void steer__drops_and_continues(void**) {
  FlowTable table;
  FlowEntry copy = entry('a', IBV_FLOW_ATTR_NORMAL, 0, 7), drop = entry('b', IBV_FLOW_ATTR_NORMAL, 1, 7),
            rest = entry('c', IBV_FLOW_ATTR_ALL_DEFAULT);
  copy.rule.continues = true;
  drop.rule.drops = true;
  for (FlowEntry* each : {&copy, &drop, &rest}) table.add(*each);
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "a");
  table.remove(drop);
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "ac");
}

void steer__what_continues_is_before_its_priority(void**) {
  FlowTable table;
  FlowEntry taking = entry('a', IBV_FLOW_ATTR_NORMAL, 1), copy = entry('b', IBV_FLOW_ATTR_NORMAL, 1, 7),
            first = entry('c', IBV_FLOW_ATTR_NORMAL, 0, 8);
  copy.rule.continues = true;
  for (FlowEntry* each : {&taking, &copy, &first}) table.add(*each);
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "ba");
  assert_string_equal(steered(table, udp_frame(8)).c_str(), "c");
}

void steer__tags_masks_and_headers(void**) {
  FlowTable table;
  FlowEntry tagged = entry('a'), net = entry('b', IBV_FLOW_ATTR_NORMAL, 1), ipv6 = entry('c', IBV_FLOW_ATTR_NORMAL, 2);
  tagged.rule.match.ethernet.value.vlan_tag = htons(5);
  tagged.rule.match.ethernet.mask.vlan_tag = htons(0xFFF);
  net.rule.match.network = Frame::Network::kIpv4;
  net.rule.match.ipv4.value.src_ip = htonl(0x42090000);
  net.rule.match.ipv4.mask.src_ip = htonl(0xFFFF0000);
  ipv6.rule.match.network = Frame::Network::kIpv6;
  for (FlowEntry* each : {&tagged, &net, &ipv6}) table.add(*each);
  assert_string_equal(steered(table, udp_frame(7, true)).c_str(), "a");
  assert_string_equal(steered(table, udp_frame(7)).c_str(), "b");
  assert_string_equal(steered(table, ipv6_frame(7)).c_str(), "c");
}

struct [[gnu::packed, gnu::aligned(8)]] Written {
  ibv_flow_attr attr = {};
  ibv_flow_spec_eth eth = {};
  ibv_flow_spec_ipv4_ext ip = {};
  ibv_flow_spec_tcp_udp udp = {};

  Written() {
    attr.size = sizeof(*this);
    attr.num_of_specs = 3;
    attr.port = 1;
    eth.type = IBV_FLOW_SPEC_ETH;
    eth.size = sizeof eth;
    ip.type = IBV_FLOW_SPEC_IPV4_EXT;
    ip.size = sizeof ip;
    ip.val.tos = ip.mask.tos = 0x10;
    udp.type = IBV_FLOW_SPEC_UDP;
    udp.size = sizeof udp;
    udp.val.dst_port = htons(7);
    udp.mask.dst_port = 0xFFFF;
  }
  int read(FlowRule & rule) {
    return read_flow(*reinterpret_cast<const ibv_flow_attr*>(this), rule);
  }
};

void read_flow__packed_specifications(void**) {
  Written written;
  written.attr.priority = 3;
  FlowRule rule;
  assert_int_equal(written.read(rule), 0);
  assert_int_equal(rule.priority, 3);
  FrameBytes bytes = udp_frame(7), other = udp_frame(8);
  Frame frame;
  assert_true(parse_frame(bytes.all(), frame));
  assert_true(rule.match.fits(frame));
  assert_true(parse_frame(other.all(), frame));
  assert_false(rule.match.fits(frame));
}

template <typename Change>
int error_of(Change change) {
  Written written;
  change(written);
  FlowRule rule;
  return written.read(rule);
}

void read_flow__refuses_as_the_kernel(void**) {
  assert_int_equal(error_of([](Written& flow) { flow.attr.port = 2; }), EINVAL);
  assert_int_equal(error_of([](Written& flow) { flow.attr.comp_mask = 1; }), EINVAL);
  assert_int_equal(error_of([](Written& flow) { flow.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS; }), EINVAL);
  assert_int_equal(error_of([](Written& flow) { flow.attr.num_of_specs = 11; }), EINVAL);
  assert_int_equal(error_of([](Written& flow) { flow.attr.priority = 16; }), ENOMEM);
  assert_int_equal(error_of([](Written& flow) { flow.attr.type = static_cast<ibv_flow_attr_type>(4); }), EINVAL);
  assert_int_equal(error_of([](Written& flow) { flow.udp.type = static_cast<ibv_flow_spec_type>(0x77); }), EINVAL);
  assert_int_equal(error_of([](Written& flow) { flow.udp.type = IBV_FLOW_SPEC_ACTION_TAG; }), EOPNOTSUPP);
  assert_int_equal(error_of([](Written& flow) { flow.udp.size = 4; }), EINVAL);
  assert_int_equal(error_of([](Written& flow) { flow.eth.type = IBV_FLOW_SPEC_TCP; }), EINVAL);
  assert_int_equal(error_of([](Written& flow) {
                     flow.eth.val.ether_type = htons(0x86DD);
                     flow.eth.mask.ether_type = 0xFFFF;
                   }),
                   EINVAL);
  assert_int_equal(error_of([](Written& flow) {
                     flow.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT;
                     flow.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
                   }),
                   EINVAL);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(steer__the_first_by_priority),
      cmocka_unit_test(steer__a_copy_for_each_that_wants_the_same),
      cmocka_unit_test(steer__default_flows_get_the_rest),
      cmocka_unit_test(steer__one_copy_for_each_queue_pair),
      cmocka_unit_test(steer__a_drop_is_no_copy),
      cmocka_unit_test(steer__drops_and_continues),
      cmocka_unit_test(steer__what_continues_is_before_its_priority),
      cmocka_unit_test(steer__tags_masks_and_headers),
      cmocka_unit_test(read_flow__packed_specifications),
      cmocka_unit_test(read_flow__refuses_as_the_kernel),
  };
  return cmocka_run_group_tests_name("flow_table", tests, nullptr, nullptr);
}
