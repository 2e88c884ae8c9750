// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/network/port_owner.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "provider/network/socket_process.hpp"

namespace dapple::soft {
namespace {

// The sockets on `port` in a table of /proc/net. False if it cannot be read, with errno.
bool find(const char* table, uint16_t port, PortOwner& owner, unsigned long& inode) {
  FILE* file = fopen(table, "re");
  if (file == nullptr) return false;
  char line[512];
  while (owner.kind == PortOwner::Kind::kUnknown && fgets(line, sizeof line, file) != nullptr) {
    unsigned local_port, uid;
    unsigned long number;
    // sl local_address:port remote:port state queues timer retransmits uid timeout inode
    if (sscanf(line, " %*[0-9]: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u %*s %lu", &local_port, &uid, &number) != 3) {
      continue;
    }
    if (local_port != port) continue;
    owner.uid = uid;
    inode = number;
    // Sockets that the kernel has for itself have no file.
    owner.kind = number == 0 ? PortOwner::Kind::kKernel : PortOwner::Kind::kProcess;
  }
  fclose(file);
  return true;
}

}  // namespace

PortOwner port_owner(uint16_t port) {
  PortOwner owner;
  unsigned long inode = 0;
  const bool read4 = find("/proc/net/udp", port, owner, inode);
  // A kernel whose IPv6 is off has no such table, and no such sockets.
  const bool read6 = find("/proc/net/udp6", port, owner, inode) || errno == ENOENT;
  if (owner.kind == PortOwner::Kind::kUnknown && read4 && read6) owner.kind = PortOwner::Kind::kNobody;
  if (owner.kind == PortOwner::Kind::kProcess) {
    const SocketProcess holder = find_socket_process(inode);
    owner.process = holder.process;
    memcpy(owner.program, holder.program, sizeof owner.program);
  }
  return owner;
}

void describe(const PortOwner& owner, uint16_t port, char* line, size_t size) {
  if (owner.kind == PortOwner::Kind::kKernel) {
    snprintf(
        line, size,
        "The kernel's rdma_rxe has UDP port %u here: use its device, delete it (rdma link delete), or run in another "
        "network namespace",
        port);
  } else if (owner.kind != PortOwner::Kind::kProcess) {
    snprintf(line, size, "UDP port %u is in use: end the program that has it, or run in another network namespace",
             port);
  } else if (owner.process != 0) {
    snprintf(line, size, "Process %d (%s) of user %u has UDP port %u: end it, or run in another network namespace",
             owner.process, owner.program, owner.uid, port);
  } else {
    snprintf(line, size, "A program of user %u has UDP port %u: end it, or run in another network namespace", owner.uid,
             port);
  }
}

}  // namespace dapple::soft
