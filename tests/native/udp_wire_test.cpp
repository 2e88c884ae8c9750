// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Packets between slots: over loopback, and over a veth pair whose receiver merges them (GRO), with both IP versions.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "provider/common/settings.hpp"
#include "provider/member/daemon_link.hpp"
#include "provider/network/gid.hpp"
#include "provider/soft/wire/udp_wire.hpp"
#include "roce/packet/packet.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/remains.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/refused_call.hpp"

using namespace dapple;
using namespace dapple::soft;

namespace {

tests::VethPair veth;
int this_namespace = -1;
constexpr int kUdpNoCheck6Tx = 101;  // UDP_NO_CHECK6_TX of <linux/udp.h>

// A program with a device: a link, a slot, a wire.
struct Program {
  Problem problem;
  std::unique_ptr<DaemonLink> link;
  Slot slot;
  std::unique_ptr<UdpWire> wire;
  std::unique_ptr<SendBatch> batch;

  bool open() {
    link = DaemonLink::open(problem);
    if (link == nullptr || !link->slot(slot, problem)) return false;
    // The slot's counters would continue from its last owner's values.
    slot.counters = nullptr;
    wire = UdpWire::open(slot, problem);
    if (wire == nullptr) return false;
    batch.reset(wire->make_batch());
    return batch != nullptr;
  }
};

// Records the packets that arrived: the PSNs in order, and the last packet's addresses.
struct Arrivals final : ArrivalSink {
  std::vector<uint32_t> psns;
  std::vector<std::byte> payload, grh;
  uint8_t source[16] = {}, destination[16] = {};
  bool good = true;

  void arrived(const Arrival& arrival) override {
    roce::Packet packet;
    good = good && roce::parse(arrival.transport, packet) == roce::ParseError::kNone;
    psns.push_back(packet.headers.psn);
    payload.assign(packet.payload.begin(), packet.payload.end());
    grh.assign(arrival.grh.begin(), arrival.grh.end());
    memcpy(source, arrival.source, sizeof source);
    memcpy(destination, arrival.destination, sizeof destination);
  }
};

void receive_until(Program& program, Arrivals& arrivals, size_t count) {
  // Continues until no packet has arrived for a while.
  for (int idle = 0; idle < 200 && arrivals.psns.size() < count; idle++) {
    pollfd waiting = {program.wire->receive_fd(), POLLIN, 0};
    if (poll(&waiting, 1, 10) > 0 && program.wire->receive(arrivals) > 0) idle = 0;
  }
}

Path path_between(const char* from, const char* to, bool ipv6) {
  Path path;
  if (ipv6) {
    inet_pton(AF_INET6, from, path.source);
    inet_pton(AF_INET6, to, path.destination);
  } else {
    in_addr address;
    inet_pton(AF_INET, from, &address);
    ipv4_gid(&address, path.source);
    inet_pton(AF_INET, to, &address);
    ipv4_gid(&address, path.destination);
  }
  return path;
}

// Writes one packet. False if the batch has no room.
bool put(Program& from, const Path& path, uint32_t qpn, uint32_t psn, size_t payload_size, roce::Transport transport,
         roce::Operation operation, size_t header_size) {
  roce::Headers headers;
  headers.opcode = roce::opcode_of(transport, operation);
  headers.destination_qpn = qpn;
  headers.psn = psn;
  from.batch->set_path(path);
  std::byte* room = from.batch->reserve(header_size + payload_size);
  if (room == nullptr) return false;
  roce::write_headers(headers, {room, header_size});
  for (size_t i = 0; i < payload_size; i++) room[header_size + i] = static_cast<std::byte>(psn + i);
  from.batch->commit(nullptr);
  return true;
}

// Writes one packet of a Send.
bool put(Program& from, const Path& path, uint32_t qpn, uint32_t psn, size_t payload_size, bool datagram = false) {
  if (datagram) {
    return put(from, path, qpn, psn, payload_size, roce::Transport::kUd, roce::Operation::kSendOnly,
               roce::kBthSize + 8);
  }
  return put(from, path, qpn, psn, payload_size, roce::Transport::kRc, roce::Operation::kSendMiddle, roce::kBthSize);
}

void check_run(Program& from, Program& to, const Path& path, uint32_t count, size_t size) {
  Arrivals arrivals;
  for (uint32_t i = 0; i < count; i++) assert_true(put(from, path, to.slot.number << 16 | 7, i, size));
  assert_true(from.batch->flush());
  receive_until(to, arrivals, count);
  assert_int_equal(arrivals.psns.size(), count);
  assert_true(arrivals.good);
  for (uint32_t i = 0; i < count; i++) assert_int_equal(arrivals.psns[i], i);
  assert_int_equal(arrivals.payload.size(), size);
  for (size_t i = 0; i < size; i++) assert_int_equal(arrivals.payload[i], static_cast<std::byte>(count - 1 + i));
  assert_memory_equal(arrivals.source, path.source, 16);
  assert_memory_equal(arrivals.destination, path.destination, 16);
}

struct Two {
  Program a, b;
};

int open_two(void** state) {
  auto* two = new Two;
  *state = two;
  if (two->a.open() && two->b.open()) return 0;
  fprintf(stderr, "%s%s\n", two->a.problem.line, two->b.problem.line);
  return -1;
}

int close_two(void** state) {
  delete static_cast<Two*>(*state);
  return 0;
}

void udp_wire__loopback__delivers_to_the_slot(void** state) {
  auto& [a, b] = *static_cast<Two*>(*state);
  assert_int_not_equal(a.slot.number, b.slot.number);
  assert_true(a.slot.dual_stack);
  for (const bool ipv6 : {false, true}) {
    const Path path = ipv6 ? path_between("::1", "::1", true) : path_between("127.0.0.1", "127.0.0.2", false);
    check_run(a, b, path, 1, 8);
    check_run(a, b, path, 64, 1024);
    check_run(b, a, path, 200, 1024);
    check_run(a, b, path, 10, 4096);
  }
  assert_int_equal(b.wire->counters().bad_icrc.value(), 0);
  assert_int_equal(a.wire->counters().segmentation_off.value(), 0);
  // Segmentation by the kernel: 64 packets of 1,024 bytes go out in two pieces at most.
  assert_true(a.wire->counters().sent_batches.value() < a.wire->counters().sent_packets.value() / 4);
}

void udp_wire__mixed_sizes__all_arrive_in_order(void** state) {
  auto& [a, b] = *static_cast<Two*>(*state);
  const Path path = path_between("127.0.0.1", "127.0.0.1", false);
  const size_t sizes[] = {1040, 1024, 1024, 1024, 512, 8, 1024, 1024, 4, 2048, 2048, 2048, 16, 16, 12};
  Arrivals arrivals;
  uint32_t psn = 0;
  for (int round = 0; round < 20; round++) {
    for (const size_t size : sizes) assert_true(put(a, path, b.slot.number << 16 | 9, psn++, size));
  }
  assert_true(a.batch->flush());
  receive_until(b, arrivals, psn);
  assert_int_equal(arrivals.psns.size(), psn);
  for (uint32_t i = 0; i < psn; i++) assert_int_equal(arrivals.psns[i], i);
}

// An acknowledgement goes along behind its peer's message, and its completion comes before the message's. It must not
// overtake responses, which are in one order with it.
void udp_wire__acknowledgement_behind_messages__comes_first(void** state) {
  auto& [a, b] = *static_cast<Two*>(*state);
  const Path path = path_between("127.0.0.1", "127.0.0.2", false);
  const uint32_t qpn = b.slot.number << 16 | 7;
  for (const roce::Operation operation : {roce::Operation::kSendMiddle, roce::Operation::kReadResponseMiddle}) {
    const bool overtakes = operation == roce::Operation::kSendMiddle;
    for (uint32_t messages = 1; messages <= 3; messages++) {
      Arrivals arrivals;
      for (uint32_t i = 0; i < messages; i++) {
        assert_true(put(a, path, qpn, i, 64, roce::Transport::kRc, operation, roce::kBthSize));
      }
      assert_true(
          put(a, path, qpn, messages, 0, roce::Transport::kRc, roce::Operation::kAcknowledge, roce::kBthSize + 4));
      const uint64_t datagrams = b.wire->counters().received_batches.value();
      assert_true(a.batch->flush());
      receive_until(b, arrivals, messages + 1);
      assert_int_equal(b.wire->counters().received_batches.value(), datagrams + 1);
      assert_int_equal(arrivals.psns.size(), messages + 1);
      assert_true(arrivals.good);
      for (uint32_t i = 0; i <= messages; i++) {
        assert_int_equal(arrivals.psns[i], !overtakes ? i : (i == 0 ? messages : i - 1));
      }
    }
  }
}

// A mark belongs to the packet behind it.
void udp_wire__acknowledgement_behind_a_mark__stays_there(void** state) {
  auto& [a, b] = *static_cast<Two*>(*state);
  const Path path = path_between("127.0.0.1", "127.0.0.2", false);
  const uint32_t qpn = b.slot.number << 16 | 7;
  Arrivals arrivals;
  a.batch->set_path(path);
  std::byte* const room = a.batch->reserve(roce::kBthSize + 64);
  assert_non_null(room);
  memset(room, 0, roce::kBthSize + 64);
  roce::write_bth({.opcode = roce::kHostOpcode, .destination_qpn = qpn, .psn = 7}, room);
  a.batch->commit(nullptr);
  assert_true(put(a, path, qpn, 8, 0, roce::Transport::kRc, roce::Operation::kAcknowledge, roce::kBthSize + 4));
  const uint64_t datagrams = b.wire->counters().received_batches.value();
  assert_true(a.batch->flush());
  receive_until(b, arrivals, 2);
  assert_int_equal(b.wire->counters().received_batches.value(), datagrams + 1);
  assert_int_equal(arrivals.psns.size(), 2);
  assert_int_equal(arrivals.psns[0], 7);
}

void check_grh(Program& from, Program& to, const Path& path) {
  Arrivals arrivals;
  assert_true(put(from, path, to.slot.number << 16 | 9, 1, 16, true));
  assert_true(from.batch->flush());
  receive_until(to, arrivals, 1);
  assert_int_equal(arrivals.psns.size(), 1);
  assert_int_equal(arrivals.grh.size(), 40);
  const auto* grh = reinterpret_cast<const uint8_t*>(arrivals.grh.data());
  if (!is_ipv4(path.source)) {
    assert_int_equal(grh[0] << 8 | grh[1], 0x6000 | path.traffic_class << 4);
    assert_int_equal(grh[4] << 8 | grh[5], 8 + 12 + 8 + 16 + 4);
    assert_int_equal(grh[6], 17);
    assert_int_equal(grh[7], path.hop_limit);
    assert_memory_equal(grh + 8, path.source, 16);
    assert_memory_equal(grh + 24, path.destination, 16);
  } else {
    for (int i = 0; i < 20; i++) assert_int_equal(grh[i], 0);
    assert_int_equal(grh[20], 0x45);
    assert_int_equal(grh[21], path.traffic_class);
    assert_int_equal(grh[28], path.hop_limit);
    assert_memory_equal(grh + 32, path.source + 12, 4);
    assert_memory_equal(grh + 36, path.destination + 12, 4);
  }
}

// A socket sends its first packet's hop limit and traffic class by itself, and others beside the packet.
void udp_wire__datagram__has_a_grh(void** state) {
  Program& to = static_cast<Two*>(*state)->b;
  Program from;
  assert_true(from.open());
  to.wire->expect_datagrams();
  for (const bool ipv6 : {false, true}) {
    Path path = ipv6 ? path_between("::1", "::1", true) : path_between("127.0.0.1", "127.0.0.1", false);
    Path other = path;
    path.hop_limit = 33;
    path.traffic_class = 0x28;
    check_grh(from, to, path);
    check_grh(from, to, other);
    other.hop_limit = 33;
    check_grh(from, to, other);
    check_grh(from, to, path);
  }
}

// A socket without a slot that sends to the RoCE port of loopback.
int stranger() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(kRocePort);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_int_equal(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return fd;
}

void udp_wire__bad_packets__are_counted_and_dropped(void** state) {
  auto& [a, b] = *static_cast<Two*>(*state);
  const int fd = stranger();
  static unsigned char bytes[60000];
  const auto send_sized = [&](size_t size, uint32_t slot) {
    memset(bytes, 0, sizeof bytes);
    bytes[0] = 4;
    bytes[5] = static_cast<unsigned char>(slot);
    assert_int_equal(send(fd, bytes, size, 0), size);
  };
  const uint32_t slot = b.slot.number;
  send_sized(12, slot);
  send_sized(15, slot);
  send_sized(8, slot);  // the smallest packet that is steered by its QP number
  send_sized(50, slot);
  send_sized(60000, slot);
  send_sized(48, slot);  // ICRC 0
  for (uint32_t other = 0; other < 256; other++) {
    if (other != slot && other != a.slot.number) send_sized(48, other);
  }
  send_sized(0, 0);
  send_sized(1, 0);
  // Only the ICRC detects this damage.
  check_run(a, b, path_between("127.0.0.1", "127.0.0.1", false), 1, 64);
  const WireCounters& counters = b.wire->counters();
  assert_int_equal(counters.runts.value(), 3);
  assert_int_equal(counters.unaligned.value(), 1);
  assert_int_equal(counters.giants.value(), 1);
  assert_int_equal(counters.bad_icrc.value() + counters.identification.value(), 1);
  assert_int_equal(counters.foreign.value(), 0);
  assert_int_equal(counters.received_packets.value(), 1);
  Arrivals none;
  a.wire->receive(none);
  assert_int_equal(none.psns.size(), 0);
  close(fd);
}

void udp_wire__good_packet_behind_a_bad_one__arrives_at_once(void** state) {
  auto& [a, b] = *static_cast<Two*>(*state);
  const int fd = stranger();
  unsigned char bytes[48] = {4};
  bytes[5] = static_cast<unsigned char>(b.slot.number);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(send(fd, bytes, sizeof bytes, 0), sizeof bytes);
  }
  close(fd);
  assert_true(put(a, path_between("127.0.0.1", "127.0.0.1", false), b.slot.number << 16 | 7, 1, 64));
  assert_true(a.batch->flush());
  Arrivals arrivals;
  assert_int_equal(b.wire->receive(arrivals), 1);
  assert_int_equal(arrivals.psns.size(), 1);
}

void udp_wire__ipv4_multicast__reaches_who_joined(void** state) {
  auto& [a, b] = *static_cast<Two*>(*state);
  Path path = path_between("127.0.0.1", "239.7.7.7", false);
  path.netdev_index = 1;
  assert_int_equal(b.wire->join(path.destination, 1), 0);
  assert_int_equal(b.wire->join(path.destination, 1), 0);
  Arrivals to_a, to_b;
  assert_true(put(a, path, 0xFFFFFF, 5, 16, true));
  assert_true(a.batch->flush());
  receive_until(b, to_b, 1);
  a.wire->receive(to_a);
  assert_int_equal(to_b.psns.size(), 1);
  assert_int_equal(to_a.psns.size(), 0);
  assert_int_equal(b.wire->leave(path.destination, 1), 0);
  assert_true(put(a, path, 0xFFFFFF, 6, 16, true));
  assert_true(a.batch->flush());
  usleep(20000);
  b.wire->receive(to_b);
  assert_int_equal(to_b.psns.size(), 1);
}

// Our ICRC of a single packet counts on identification 0. rdma_rxe takes the number from the IPv4 header.
void udp_wire__ipv4_identification__is_the_one_of_the_icrc(void** state) {
  auto& [a, b] = *static_cast<Two*>(*state);
  (void)b;
  if (veth.other < 0) skip_test("no veth pair can be made");
  setns(veth.other, CLONE_NEWNET);
  const int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
  setns(this_namespace, CLONE_NEWNET);
  assert_true(fd >= 0);
  const Path path = path_between("10.77.0.1", "10.77.0.2", false);
  constexpr uint32_t kPackets = 5;
  uint32_t seen = 0;
  for (uint32_t psn = 0; psn < kPackets; psn++) {
    assert_true(put(a, path, 9 << 16 | 7, psn, 16));
    assert_true(a.batch->flush());
    pollfd waiting = {fd, POLLIN, 0};
    while (seen == psn && poll(&waiting, 1, 20000) == 1) {
      uint8_t bytes[2048];
      const ssize_t size = recv(fd, bytes, sizeof bytes, 0);
      // The header of UDP follows 20 bytes of IPv4.
      if (size < 28 || (bytes[22] << 8 | bytes[23]) != kRocePort) continue;
      seen++;
      assert_int_equal(bytes[4] << 8 | bytes[5], 0);
    }
  }
  close(fd);
  assert_int_equal(seen, kPackets);
}

// Two slots of one host have one sender: the receiving kernel merges by address and port before it chooses the slot.
void udp_wire__veth_with_gro__never_mixes_slots(void** state) {
  (void)state;
  if (veth.other < 0) skip_test("no veth pair can be made");
  auto programs = std::make_unique<Program[]>(3);
  Program &sender = programs[0], &b = programs[1], &c = programs[2];
  assert_true(sender.open());
  setns(veth.other, CLONE_NEWNET);
  constexpr uint32_t kRounds = 50, kEach = 20;
  const bool opened = b.open() && c.open();
  setns(this_namespace, CLONE_NEWNET);
  assert_true(opened);
  for (const bool ipv6 : {false, true}) {
    const Path path = ipv6 ? path_between("fd77::1", "fd77::2", true) : path_between("10.77.0.1", "10.77.0.2", false);
    Arrivals to_b, to_c;
    for (uint32_t round = 0; round < kRounds; round++) {
      // Packets go out one by one, so that only the receiver merges, and in runs.
      for (uint32_t i = 0; i < kEach; i++) {
        assert_true(put(sender, path, b.slot.number << 16 | 7, round * kEach + i, 1024));
        if (round % 2 == 0) sender.batch->flush();
        assert_true(put(sender, path, c.slot.number << 16 | 7, round * kEach + i, 1024));
        if (round % 2 == 0) sender.batch->flush();
      }
      sender.batch->flush();
      receive_until(b, to_b, (round + 1) * kEach);
      receive_until(c, to_c, (round + 1) * kEach);
    }
    assert_int_equal(to_b.psns.size(), kRounds * kEach);
    assert_int_equal(to_c.psns.size(), kRounds * kEach);
    for (uint32_t i = 0; i < kRounds * kEach; i++) {
      assert_int_equal(to_b.psns[i], i);
      assert_int_equal(to_c.psns[i], i);
    }
  }
  // The kernel did merge packets.
  if (veth.merges) assert_true(b.wire->counters().received_batches.value() < 4 * kRounds * kEach / 5);
  assert_int_equal(b.wire->counters().foreign.value() + c.wire->counters().foreign.value(), 0);
  assert_int_equal(b.wire->counters().bad_icrc.value() + c.wire->counters().bad_icrc.value(), 0);
}

void udp_wire__faults__act_by_their_seed(void** state) {
  (void)state;
  setenv("DAPPLE_FAULTS", "drop=0.2,dup=0.1,corrupt=0.1,reorder=0.1,delay=1ms,seed=7", 1);
  provider::read_settings_again();
  auto programs = std::make_unique<Program[]>(3);
  Program &sender = programs[0], &faulty = programs[1], &refused = programs[2];
  const bool opened = sender.open() && faulty.open();
  setenv("DAPPLE_FAULTS", "drop=2", 1);
  provider::read_settings_again();
  const bool opened_wrong = refused.open();
  unsetenv("DAPPLE_FAULTS");
  provider::read_settings_again();
  assert_true(opened);
  assert_false(opened_wrong);
  assert_non_null(strstr(refused.problem.line, "drop=2"));
  const Path path = path_between("127.0.0.1", "127.0.0.1", false);
  for (uint32_t i = 0; i < 1000; i++) assert_true(put(sender, path, faulty.slot.number << 16 | 7, i, 64));
  assert_true(sender.batch->flush());
  Arrivals arrivals;
  receive_until(faulty, arrivals, 2000);
  const WireCounters& counters = faulty.wire->counters();
  const uint64_t copies =
      arrivals.psns.size() + counters.bad_icrc.value() + counters.identification.value() + counters.foreign.value();
  assert_in_range(counters.fault_drops.value(), 120, 280);
  assert_in_range(copies, 780, 980);
  assert_in_range(counters.bad_icrc.value(), 30, 150);
  bool ordered = true;
  for (size_t i = 1; i < arrivals.psns.size(); i++) ordered = ordered && arrivals.psns[i - 1] <= arrivals.psns[i];
  assert_false(ordered);
}

void udp_wire__pcap__has_both_directions(void** state) {
  (void)state;
  char name[] = "pcap-test-XXXXXX";
  const int fd = mkstemp(name);
  setenv("DAPPLE_PCAP", name, 1);
  provider::read_settings_again();
  auto programs = std::make_unique<Program[]>(2);
  const bool opened = programs[0].open() && programs[1].open();
  unsetenv("DAPPLE_PCAP");
  provider::read_settings_again();
  unlink(name);
  assert_true(opened);
  for (const bool ipv6 : {false, true}) {
    const Path path = ipv6 ? path_between("::1", "::1", true) : path_between("127.0.0.1", "127.0.0.1", false);
    check_run(programs[0], programs[1], path, 3, 64);
  }
  // Three packets of each version, sent and received: 20 or 40, 8, 12, 64 and 4 bytes each, 16 of the record, and 16
  // with the direction.
  assert_int_equal(lseek(fd, 0, SEEK_END), 24 + 6 * (32 + 20 + 88) + 6 * (32 + 40 + 88));
  uint32_t sent = 0, received = 0;
  off_t at = 24;
  for (uint16_t direction; pread(fd, &direction, sizeof direction, at + 16) == sizeof direction;) {
    sent += ntohs(direction) == PACKET_OUTGOING;
    received += ntohs(direction) == PACKET_HOST;
    uint32_t size = 0;
    assert_int_equal(pread(fd, &size, sizeof size, at + 8), sizeof size);
    at += 16 + size;
  }
  assert_int_equal(sent, 6);
  assert_int_equal(received, 6);
  close(fd);
}

// Makes the kernel refuse to segment: it must fill in the checksums of segments. Counts the sockets.
int refuse_segmentation(bool ipv6) {
  int count = 0;
  const int one = 1;
  for (int fd = 3; fd < 1024; fd++) {
    int protocol = 0, family = 0;
    socklen_t size = sizeof protocol;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_UDP) continue;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
    sockaddr_in6 address = {};
    size = sizeof address;
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    // The port is at the same place for both families. Slots only receive.
    if (family != (ipv6 ? AF_INET6 : AF_INET) || ntohs(address.sin6_port) == kRocePort) continue;
    const int result = ipv6 ? setsockopt(fd, IPPROTO_UDP, kUdpNoCheck6Tx, &one, sizeof one)
                            : setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof one);
    count += result == 0 ? 1 : 0;
  }
  return count;
}

// The IPv4 identifications in a file of packets, from this offset on, that are not 0. Our receiver writes the one that
// explains the ICRC.
uint32_t other_identifications(int file, off_t from, uint32_t& packets) {
  uint32_t others = 0;
  packets = 0;
  constexpr size_t kIp = 16 + 16;
  unsigned char bytes[kIp + 20];
  while (pread(file, bytes, sizeof bytes, from) == sizeof bytes) {
    uint32_t size;
    memcpy(&size, bytes + 8, sizeof size);
    from += 16 + size;
    packets++;
    if (bytes[kIp] >> 4 == 4 && (bytes[kIp + 4] | bytes[kIp + 5]) != 0) others++;
  }
  return others;
}

// rdma_rxe takes the identification from the IPv4 header, and a packet that is sent by itself has 0 there.
void udp_wire__segmentation_refused__packets_go_one_by_one(void**) {
  char name[] = "pcap-test-XXXXXX";
  const int file = mkstemp(name);
  auto programs = std::make_unique<Program[]>(2);
  Program &a = programs[0], &b = programs[1];
  const bool a_opened = a.open();
  setenv("DAPPLE_PCAP", name, 1);
  provider::read_settings_again();
  const bool b_opened = b.open();
  unsetenv("DAPPLE_PCAP");
  provider::read_settings_again();
  unlink(name);
  assert_true(a_opened && b_opened);
  uint32_t packets = 0;
  for (const bool ipv6 : {false, true}) {
    const Path path = ipv6 ? path_between("::1", "::1", true) : path_between("127.0.0.1", "127.0.0.2", false);
    const uint64_t before = a.wire->counters().segmentation_off.value();
    check_run(a, b, path, 3, 1024);
    assert_int_equal(refuse_segmentation(ipv6), 1);
    assert_int_equal(a.wire->counters().segmentation_off.value(), before);
    const off_t from = lseek(file, 0, SEEK_END);
    check_run(a, b, path, 64, 1024);
    const uint64_t after = a.wire->counters().segmentation_off.value();
    assert_true(after > before);
    // The next batch does not ask again.
    check_run(a, b, path, 3, 1024);
    assert_int_equal(a.wire->counters().segmentation_off.value(), after);
    assert_int_equal(other_identifications(file, from, packets), 0);
    assert_int_equal(packets, 67);
  }
  assert_int_equal(a.wire->counters().send_errors.value(), 0);
  assert_int_equal(b.wire->counters().bad_icrc.value(), 0);
  close(file);
}

// The exit code of a program on a host without IPv6.
int live_without_ipv6() {
  if (!tests::refuse_call(SYS_socket, AF_INET6, EAFNOSUPPORT)) return 77;
  auto programs = std::make_unique<Program[]>(2);
  Program &a = programs[0], &b = programs[1];
  if (!a.open() || !b.open()) return 1;
  if (a.slot.dual_stack || b.slot.dual_stack) return 2;
  constexpr uint32_t kPackets = 64;
  const Path path = path_between("127.0.0.1", "127.0.0.2", false);
  Arrivals arrivals;
  for (uint32_t i = 0; i < kPackets; i++) {
    if (!put(a, path, b.slot.number << 16 | 7, i, 1024)) return 3;
  }
  if (!a.batch->flush()) return 3;
  receive_until(b, arrivals, kPackets);
  if (!arrivals.good || arrivals.psns.size() != kPackets) return 4;
  for (uint32_t i = 0; i < kPackets; i++) {
    if (arrivals.psns[i] != i) return 5;
  }
  if (memcmp(arrivals.source, path.source, 16) != 0) return 6;
  if (memcmp(arrivals.destination, path.destination, 16) != 0) return 6;
  uint8_t group[16];
  inet_pton(AF_INET6, "ff12::77", group);
  return b.wire->join(group, 1) == EAFNOSUPPORT ? 0 : 7;
}

void udp_wire__host_without_ipv6__has_ipv4(void**) {
  // A dappled that runs already has sockets for both versions.
  assert_true(tests::ends_soon());
  const pid_t child = fork();
  if (child == 0) _exit(live_without_ipv6());
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) skip();
  assert_int_equal(WEXITSTATUS(status), 0);
  assert_true(tests::ends_soon());
}

}  // namespace

int main() {
  tests::need_new_namespace();
  this_namespace = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  veth = tests::make_veth_pair();
  const CMUnitTest all[] = {
      cmocka_unit_test_setup_teardown(udp_wire__loopback__delivers_to_the_slot, open_two, close_two),
      cmocka_unit_test_setup_teardown(udp_wire__mixed_sizes__all_arrive_in_order, open_two, close_two),
      cmocka_unit_test_setup_teardown(udp_wire__acknowledgement_behind_messages__comes_first, open_two, close_two),
      cmocka_unit_test_setup_teardown(udp_wire__acknowledgement_behind_a_mark__stays_there, open_two, close_two),
      cmocka_unit_test_setup_teardown(udp_wire__datagram__has_a_grh, open_two, close_two),
      cmocka_unit_test_setup_teardown(udp_wire__bad_packets__are_counted_and_dropped, open_two, close_two),
      cmocka_unit_test_setup_teardown(udp_wire__good_packet_behind_a_bad_one__arrives_at_once, open_two, close_two),
      cmocka_unit_test_setup_teardown(udp_wire__ipv4_multicast__reaches_who_joined, open_two, close_two),
      cmocka_unit_test_setup_teardown(udp_wire__ipv4_identification__is_the_one_of_the_icrc, open_two, close_two),
      cmocka_unit_test(udp_wire__veth_with_gro__never_mixes_slots),
      cmocka_unit_test(udp_wire__faults__act_by_their_seed),
      cmocka_unit_test(udp_wire__pcap__has_both_directions),
      cmocka_unit_test(udp_wire__segmentation_refused__packets_go_one_by_one),
      cmocka_unit_test(udp_wire__host_without_ipv6__has_ipv4),
  };
  return cmocka_run_group_tests(all, nullptr, nullptr);
}
