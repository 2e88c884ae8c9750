// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/unit/provider-soft/links_rig.hpp"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include <mutex>
#include <span>
#include <thread>

#include "provider/protocol/unix_message.hpp"

namespace dapple::soft::test {
namespace {

socklen_t address_of(uint32_t slot, sockaddr_un& address) {
  char name[32];
  snprintf(name, sizeof name, "%s%u", kSlotName, slot);
  return abstract_address(name, address);
}

}  // namespace

Process::Process(uint32_t slot, uint64_t most_bytes) {
  sockaddr_un address;
  const socklen_t size = address_of(slot, address);
  // A process that ends, or executes another program, closes its connections a moment before its lease.
  int tries = 0;
  while (bind(lease.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 && ++tries < 5000) usleep(1000);
  assert_int_not_equal(tries, 5000);
  assert_true(links.open(slot, lease.get(), counters, transports, most_bytes) == Transport::kSharedMemory);
  assert_true(links.fd() >= 0);
}

// On a thread of its own, as the locks of the other process, which this one may hold, are not its own.
size_t Process::receive() {
  size_t count = 0;
  std::thread([&] {
    links.attend();
    count = links.receive(sink);
  }).join();
  return count;
}

bool Process::has_event(int milliseconds) const {
  pollfd waiting = {links.fd(), POLLIN, 0};
  return poll(&waiting, 1, milliseconds) == 1;
}

bool write(RingTo* ring, size_t size, uint8_t value) {
  const std::lock_guard lock(ring->mutex);
  std::byte* to = ring->writer().reserve(size, kEnds);
  if (to == nullptr) return false;
  memset(to, value, size);
  ring->writer().commit();
  ring->writer().publish();
  return true;
}

OwnedFd connect_to(uint32_t slot) {
  OwnedFd made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address;
  const socklen_t size = address_of(slot, address);
  assert_int_equal(connect(made.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  return made;
}

OwnedFd listen_at(uint32_t slot) {
  OwnedFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address;
  const socklen_t size = address_of(slot, address);
  assert_int_equal(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  assert_int_equal(listen(listener.get(), 8), 0);
  return listener;
}

void greet(const OwnedFd& socket, const RingHello& hello, int file) {
  const int files[] = {file};
  const std::span<const int> sent(files, file >= 0 ? 1 : 0);
  assert_int_equal(send_message(socket.get(), std::as_bytes(std::span(&hello, 1)), sent), 0);
}

bool closed(const OwnedFd& socket, Transport* why) {
  uint8_t byte = 0;
  ssize_t size;
  while ((size = recv(socket.get(), &byte, 1, MSG_DONTWAIT)) == 1) {
    if (why != nullptr) *why = static_cast<Transport>(byte);
  }
  return size == 0 || errno == ECONNRESET;
}

}  // namespace dapple::soft::test
