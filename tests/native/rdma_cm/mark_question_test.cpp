// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// QP 1 of dappled answers the question whether a host takes marks, and nothing else that comes from another queue pair
// than QP 1. It is at 127.0.0.1, and a program that asks at 127.0.0.2.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <optional>
#include <vector>

#include "provider/dappled/rdma_cm/packets/mad_wire.hpp"
#include "provider/network/gid.hpp"
#include "provider/network/namespace_identity.hpp"
#include "provider/protocol/mark_question.hpp"
#include "provider/protocol/slot_numbers.hpp"
#include "provider/soft/wire/udp_wire.hpp"
#include "tests/native/kills/stage.hpp"
#include "tests/native/namespaces.hpp"

using namespace dapple;
using namespace dapple::tests;

namespace {

constexpr uint32_t kSlot = 1;
constexpr int kPatienceMs = 10'000;

soft::OwnedFd socket_at(uint8_t last) {
  soft::OwnedFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(soft::kRocePort);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + last);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) failed("bind");
  return fd;
}

struct Nobody final : soft::PacketTap, dappled::rdma_cm::MadWire::Sink {
  uint32_t mads = 0;
  void write(Direction, const roce::IcrcAddresses&, uint8_t, uint8_t, std::span<const std::byte>) override {}
  void arrived(const dappled::rdma_cm::Gid&, const dappled::rdma_cm::Gid&, uint32_t,
               std::span<const std::byte>) override {
    mads++;
  }
};

struct Answers final : soft::ArrivalSink {
  std::vector<soft::MarkAnswer> got;
  void arrived(const soft::Arrival& arrival) override {
    roce::Packet packet;
    if (roce::parse(arrival.transport, packet) != roce::ParseError::kNone) return failed("no packet");
    const auto answer = soft::read_mark_answer(packet.payload);
    if (!answer || packet.headers.destination_qpn != soft::first_qpn(kSlot) + 9 ||
        packet.headers.deth.source_qpn != soft::kMarkQuestionQpn)
      return failed("another packet");
    got.push_back(*answer);
  }
};

bool waits_for(int fd) {
  pollfd waiting = {fd, POLLIN, 0};
  return poll(&waiting, 1, kPatienceMs) == 1;
}

void ask(soft::SendBatch& batch, std::span<const std::byte> mad) {
  soft::Path path;
  const in_addr from = {htonl(INADDR_LOOPBACK + 1)}, to = {htonl(INADDR_LOOPBACK)};
  soft::ipv4_gid(&from, path.source);
  soft::ipv4_gid(&to, path.destination);
  batch.set_path(path);
  roce::Headers headers;
  headers.opcode = roce::opcode_of(roce::Transport::kUd, roce::Operation::kSendOnly);
  headers.destination_qpn = soft::kMarkQuestionQpn;
  headers.deth = {.qkey = soft::kMarkQuestionQkey, .source_qpn = soft::first_qpn(kSlot) + 9};
  std::byte front[roce::kMaxHeaderSize];
  const size_t size = roce::write_headers(headers, front);
  std::byte* const packet = batch.reserve(size + mad.size());
  if (packet == nullptr) return failed("no room");
  memcpy(packet, front, size);
  memcpy(packet + size, mad.data(), mad.size());
  batch.commit(nullptr);
  batch.flush();
}

}  // namespace

int main() {
  need_new_namespace();
  if (soft::namespace_identity() == 0) skip_program("this kernel does not distinguish network namespaces");
  const soft::OwnedFd host = socket_at(1), program = socket_at(2);
  Nobody nobody;
  soft::Problem problem;
  const auto dappled = dappled::rdma_cm::MadWire::open(host.get(), false, nullptr, nobody, problem);
  soft::Slot slot;
  slot.number = kSlot;
  slot.receive_socket = program.get();
  const auto wire = soft::UdpWire::open(slot, problem, soft::UdpWire::Environment::kIgnored);
  const std::unique_ptr<soft::SendBatch> batch(wire == nullptr ? nullptr : wire->make_batch());
  if (dappled == nullptr || batch == nullptr) {
    failed("no wire: ", problem.line);
    return 1;
  }

  // The last one shows that the others have been taken, and have got no answer.
  soft::MarkMad other = soft::make_mark_question({.transaction = 1});
  other[40] ^= std::byte{1};
  ask(*batch, other);
  ask(*batch, soft::make_mark_question({.transaction = 2, .version = soft::kMarkVersion + 1}));
  ask(*batch, soft::make_mark_answer({.transaction = 3, .host = 4}));
  ask(*batch, std::span(other).first(64));
  ask(*batch, soft::make_mark_question({.transaction = 77}));
  Answers answers;
  for (const double end = now() + kPatienceMs / 1000; answers.got.empty() && now() < end;) {
    if (dappled->rejected() < 4 && !waits_for(dappled->fd())) break;
    dappled->receive(nobody);
    pollfd waiting = {wire->receive_fd(), POLLIN, 0};
    if (poll(&waiting, 1, 10) == 1) wire->receive(answers);
  }
  if (dappled->rejected() != 4 || nobody.mads != 0) failed("not all others are rejected");
  if (answers.got.size() != 1 || answers.got[0].transaction != 77) {
    failed("no answer, or more than one");
  } else if (answers.got[0].host != soft::namespace_identity() || answers.got[0].version != soft::kMarkVersion) {
    failed("a wrong answer");
  }
  if (failures() == 0) puts("all went as planned");
  return failures() == 0 ? 0 : 1;
}
