// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/native/dappled/member.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dapple::tests {

using namespace soft;

namespace {

// Sends one packet with a number to a slot.
void send_to(uint32_t slot, uint32_t number, bool ipv6) {
  static int fds[2] = {-1, -1};
  int& fd = fds[ipv6 ? 1 : 0];
  if (fd < 0) fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  unsigned char bytes[20] = {4};
  const uint32_t qpn = first_qpn(slot) + 7;
  bytes[5] = static_cast<unsigned char>(qpn >> 16);
  bytes[6] = static_cast<unsigned char>(qpn >> 8);
  bytes[7] = static_cast<unsigned char>(qpn);
  memcpy(bytes + 12, &number, sizeof number);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(kRocePort);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 to6 = {};
  to6.sin6_family = AF_INET6;
  to6.sin6_port = htons(kRocePort);
  to6.sin6_addr = in6addr_loopback;
  if (ipv6) {
    sendto(fd, bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&to6), sizeof to6);
  } else {
    sendto(fd, bytes, sizeof bytes, 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
  }
}

[[noreturn]] void live(int to) {
  Problem problem;
  Slot mine;
  const auto link = link_with_slot(mine);
  if (link == nullptr) _exit(1);
  uint32_t number = mine.number;
  while (write(to, &number, sizeof number) == sizeof number) {
    pollfd waiting[2] = {{mine.receive_socket, POLLIN, 0}, {link->fd(), POLLIN, 0}};
    while (poll(waiting, 2, -1) < 0) {
    }
    if (waiting[1].revents != 0 && !link->check(problem)) fprintf(stderr, "member: %s\n", problem.line);
    unsigned char bytes[64];
    while (recv(mine.receive_socket, bytes, sizeof bytes, MSG_DONTWAIT) != 20) {
      waiting[1].fd = link->fd();
      if (poll(waiting, 2, -1) > 0 && waiting[1].revents != 0) link->check(problem);
    }
    memcpy(&number, bytes + 12, sizeof number);
  }
  _exit(0);
}

}  // namespace

std::unique_ptr<DaemonLink> link_with_slot(Slot& slot) {
  Problem problem;
  auto link = DaemonLink::open(problem);
  if (link != nullptr && link->slot(slot, problem)) return link;
  fprintf(stderr, "%s\n", problem.line);
  return nullptr;
}

StatusReply status_of(DaemonLink& link) {
  StatusReply status;
  Problem problem;
  if (link.status(status, problem)) return status;
  fprintf(stderr, "status: %s\n", problem.line);
  abort();
}

bool Member::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    live(ends[1]);
  }
  close(ends[1]);
  from = ends[0];
  return next(slot) && slot != 0;
}

bool Member::next(uint32_t& number, int wait) const {
  pollfd waiting = {from, POLLIN, 0};
  return poll(&waiting, 1, wait) > 0 && read(from, &number, sizeof number) == sizeof number;
}

bool Member::hears(uint32_t number, bool ipv6) const {
  send_to(slot, number, ipv6);
  uint32_t heard;
  return next(heard) && heard == number;
}

void Member::end(int number) {
  if (process > 0) {
    kill(process, number);
    waitpid(process, nullptr, 0);
  }
  if (from >= 0) close(from);
  process = from = -1;
}

}  // namespace dapple::tests
