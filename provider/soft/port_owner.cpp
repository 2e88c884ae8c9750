// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/port_owner.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace dapple::soft {
namespace {

// The sockets on `port` in a table of /proc/net. False if it cannot be read.
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

// Tells whether a process holds the socket, as far as we may see its descriptors.
bool holds(const char* process, const char* wanted) {
  char path[300];
  snprintf(path, sizeof path, "/proc/%.20s/fd", process);
  DIR* folder = opendir(path);
  if (folder == nullptr) return false;
  bool found = false;
  while (const dirent* entry = found ? nullptr : readdir(folder)) {
    char target[64];
    const ssize_t size = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
    if (size <= 0) continue;
    target[size] = '\0';
    found = strcmp(target, wanted) == 0;
  }
  closedir(folder);
  return found;
}

void find_process(unsigned long inode, PortOwner& owner) {
  char wanted[64];
  snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || !holds(entry->d_name, wanted)) continue;
    owner.process = atoi(entry->d_name);
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/comm", entry->d_name);
    if (FILE* file = fopen(path, "re")) {
      if (fgets(owner.program, sizeof owner.program, file) == nullptr) owner.program[0] = '\0';
      owner.program[strcspn(owner.program, "\n")] = '\0';
      fclose(file);
    }
    break;
  }
  closedir(folder);
}

}  // namespace

PortOwner port_owner(uint16_t port) {
  PortOwner owner;
  unsigned long inode = 0;
  const bool read4 = find("/proc/net/udp", port, owner, inode);
  const bool read6 = find("/proc/net/udp6", port, owner, inode);
  if (owner.kind == PortOwner::Kind::kUnknown && read4 && read6) owner.kind = PortOwner::Kind::kNobody;
  if (owner.kind == PortOwner::Kind::kProcess) find_process(inode, owner);
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
