// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Both ends of placement in one process: published memory, and its peer.
#ifndef DAPPLE_TESTS_UNIT_PROVIDER_SOFT_PLACEMENT_RIG_HPP
#define DAPPLE_TESTS_UNIT_PROVIDER_SOFT_PLACEMENT_RIG_HPP

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "provider/soft/placement/peer_memory.hpp"
#include "provider/soft/placement/publication.hpp"
#include "provider/soft/unix_message.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace dapple::tests {

using namespace dapple::soft;
using dapple::roce::RemoteRange;

inline constexpr uint32_t kSlot = 5;
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
  alignas(4096) std::byte memory[kSize] = {};

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
    publication.placers().remove(*placer);
    placer->let_go();
  }
  // As a peer that reaches the process by this number.
  void reopen(pid_t process) {
    std::byte bytes[8];
    Descriptors files;
    peer = std::make_unique<PeerMemory>();
    publication.placers().remove(*placer);
    assert_true(publication.admit(*placer));
    assert_int_equal(receive_message(socket.get(), bytes, files), 1);
    assert_int_equal(files.count, 2);
    peer->open(std::move(files.fds[0]), std::move(files.fds[1]), ring.control().announcements, kSlot, process);
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

#endif  // DAPPLE_TESTS_UNIT_PROVIDER_SOFT_PLACEMENT_RIG_HPP
