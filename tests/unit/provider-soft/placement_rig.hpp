// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Both ends of placement in one process: published memory, and its peer, which proves its right to this process'
// memory.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "provider/protocol/unix_message.hpp"
#include "provider/soft/placement/peer_memory.hpp"
#include "provider/soft/placement/publication.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace dapple::tests {

using namespace dapple::soft;
using dapple::roce::RemoteRange;

inline constexpr uint32_t kSlot = 5, kOwnSlot = 6;
inline constexpr Parties kParties = {.target_slot = kOwnSlot, .peer_slot = kSlot};
inline constexpr uint32_t kKey = 0x12345600, kDomain = 7;
inline constexpr uint32_t kQpn = 0x20011, kPeerQpn = 0x50022;
inline constexpr uint32_t kRead = dapple::roce::kRemoteRead, kWrite = dapple::roce::kRemoteWrite;
inline constexpr size_t kSize = 64 * 1024;

inline QpDescription queue_pair(uint32_t access = kRead | kWrite) {
  QpDescription made;
  made.qpn = kQpn;
  made.peer_qpn = kPeerQpn;
  made.domain = kDomain;
  made.access = access;
  made.own_address[15] = 1;
  made.peer_address[15] = 2;
  return made;
}

struct Rig {
  Publication publication;
  Placer* placer = new Placer;
  OwnedFd socket;  // the peer's end
  RingMemory ring;
  std::unique_ptr<PeerMemory> peer = std::make_unique<PeerMemory>();
  uint32_t qp = 0;
  uint32_t key = 0;
  alignas(kSize) std::byte memory[kSize] = {};  // whole pages of every kernel

  Rig() {
    int ends[2];
    OwnedFd file;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    placer->socket.reset(ends[0]);
    placer->process = getpid();
    socket.reset(ends[1]);
    assert_int_equal(ring.create(file), 0);
    assert_int_equal(placer->memory.map(file.get()), 0);
    assert_true(publication.open());
    reopen(getpid());
    qp = publication.publish(queue_pair());
    key = publish(kKey);
    assert_true(qp != 0 && key != 0);
  }
  ~Rig() {
    publication.forget(*placer);
    placer->let_go();
  }
  ProofWords& words() const { return ring.control().proof; }
  void ask() {
    publication.forget(*placer);
    words().right = Right::kNone;
    assert_true(publication.ask(*placer, kParties));
  }
  // As a peer that copies many bytes by this number of the process.
  void reopen(pid_t process) {
    peer = std::make_unique<PeerMemory>();
    ask();
    words().right = peer->prove(words(), kParties, getpid(), publication.hides_secrets());
    assert_int_equal(words().right.load(), Right::kGranted);
    assert_int_equal(publication.judge(*placer), Right::kGranted);
    peer->open(receive_table(socket), ring.control().announcements, kSlot, process);
  }
  static OwnedFd receive_table(const OwnedFd& socket) {
    std::byte bytes[8];
    Descriptors files;
    assert_int_equal(receive_message(socket.get(), bytes, files), 1);
    assert_int_equal(files.count, 1);
    return std::move(files.fds[0]);
  }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(memory); }
  RemoteRange range(uint64_t offset, uint64_t length, uint32_t rkey = kKey) const {
    return {rkey, address() + offset, length};
  }
  uint32_t publish(uint32_t rkey, uint32_t access = kRead | kWrite, uint32_t domain = kDomain) {
    return publication.publish(
        KeyDescription{.key = rkey, .domain = domain, .access = access, .address = address(), .length = kSize});
  }
  bool grants(const RemoteRange& wanted_range, uint32_t access = kWrite) {
    const PeerMemory::Grant grant(*peer, queue_pair(access), wanted_range);
    return static_cast<bool>(grant);
  }
};

}  // namespace dapple::tests
