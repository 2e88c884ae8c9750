// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Two programs of the kind of spead2 and Firedancer: one has flows for ports of UDP, a receive for each frame, and
// events or polls; it sends each packet back from the memory in which the packet has arrived. The other one counts the
// answers. Runs under dapple-run.
#include <poll.h>
#include <string.h>

#include <atomic>

#include "tests/native/kills/stage.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/native/verbs/raw_rig.hpp"

using namespace dapple::tests;

namespace {

constexpr uint16_t kFirstPort = 7000;
constexpr uint32_t kPorts = 3, kRounds = 200;
constexpr double kPatienceOfPeer = 60;  // seconds

struct Shared {
  std::atomic<bool> is_ready{false};
  std::atomic<bool> is_over{false};
};
Shared* shared = nullptr;

RawEnd end;
ibv_qp* qp = nullptr;

bool open_program(const char* netdev, uint16_t first_port) {
  if (!open_end(end, netdev)) return false;
  qp = make_raw_qp(end);
  if (qp == nullptr || !change_raw_qp(qp, IBV_QPS_INIT)) return false;
  // As spead2: before the queue pair is ready.
  for (uint16_t i = 0; i < kPorts; ++i) {
    if (make_flow(qp, udp_flow(static_cast<uint16_t>(first_port + i))) == nullptr) return false;
  }
  // The upper half of the memory is for Sends.
  for (uint32_t i = 0; i < kRawSlots / 2; ++i) {
    if (post_room(end, qp, i, i) != 0) return false;
  }
  return change_raw_qp(qp, IBV_QPS_RTR) && change_raw_qp(qp, IBV_QPS_RTS);
}

// Turns the packet in this slot around.
void turn_around(unsigned char* frame) {
  const auto swap = [&](size_t one, size_t other, size_t size) {
    unsigned char kept[6];
    memcpy(kept, frame + one, size);
    memcpy(frame + one, frame + other, size);
    memcpy(frame + other, kept, size);
  };
  swap(0, 6, 6);
  swap(26, 30, 4);
  swap(34, 36, 2);
}

// Waits for an event of the completion queue, as spead2 does.
void wait_for_event() {
  pollfd waiting = {end.channel->fd, POLLIN, 0};
  ibv_req_notify_cq(end.cq, 0);
  ibv_wc none;
  if (ibv_poll_cq(end.cq, 0, &none) != 0 || poll(&waiting, 1, 100) != 1) return;
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(end.channel, &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
}

int echo() {
  if (!open_program("vb", kFirstPort)) return 2;
  shared->is_ready = true;
  while (!shared->is_over) {
    ibv_wc completions[kRawSlots];
    const int count = ibv_poll_cq(end.cq, kRawSlots, completions);
    if (count < 0) return 3;
    if (count == 0) wait_for_event();
    for (int i = 0; i < count; ++i) {
      const ibv_wc& each = completions[i];
      const auto slot = static_cast<uint32_t>(each.wr_id);
      if (each.status != IBV_WC_SUCCESS) return 4;
      if (each.opcode == IBV_WC_SEND) {
        if (post_room(end, qp, slot, slot) != 0) return 5;
        continue;
      }
      turn_around(end.slot(slot));
      if (post_frame(end, qp, slot, slot, each.byte_len) != 0) return 6;
    }
  }
  return 0;
}

// Sends a packet to each port and waits for the answers.
bool make_round(uint32_t round) {
  for (uint32_t i = 0; i < kPorts; ++i) {
    const uint32_t slot = kRawSlots / 2 + i;
    const size_t payload = 1 + (round * 37 + i * 500) % 1400;
    const size_t size = write_udp(end.slot(slot), static_cast<uint16_t>(8000 + i),
                                  static_cast<uint16_t>(kFirstPort + i), payload, static_cast<char>('a' + round % 20));
    if (post_frame(end, qp, slot, slot, size) != 0) return false;
  }
  uint32_t answers = 0, sends = 0;
  return await(
      kPatienceOfPeer, [&] { return answers == kPorts && sends == kPorts; },
      [&] {
        for (ibv_wc each; ibv_poll_cq(end.cq, 1, &each) == 1;) {
          if (each.status != IBV_WC_SUCCESS) continue;
          if (each.opcode == IBV_WC_SEND) {
            sends++;
            continue;
          }
          const auto slot = static_cast<uint32_t>(each.wr_id);
          const bool is_whole = (each.wc_flags & IBV_WC_IP_CSUM_OK) != 0 &&
                                end.slot(slot)[kUdpHeaders] == static_cast<unsigned char>('a' + round % 20);
          if (is_whole) answers++;
          post_room(end, qp, slot, slot);
        }
      });
}

int ask() {
  if (!open_program("va", 8000)) return 2;
  if (!await(kPatienceOfPeer, [] { return shared->is_ready.load(); })) return 3;
  uint32_t round = 0;
  while (round < kRounds && make_round(round)) round++;
  shared->is_over = true;
  return round == kRounds ? 0 : 4;
}

}  // namespace

int main() {
  shared = prepare_stage<Shared>();
  if (!make_veth_ends()) skip_program("no veth pair can be made");
  const pid_t echoing = start_process(echo);
  if (!ends_with(start_process(ask), 0)) failed("the program that asks");
  shared->is_over = true;
  if (!ends_with(echoing, 0)) failed("the program that answers");
  return failures() == 0 ? 0 : 1;
}
