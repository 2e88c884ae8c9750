/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "tests/softroce/descriptors.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int option(int fd, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

/* Abstract names begin with a zero. */
static bool is_name_of_slot(const struct sockaddr_un* address, socklen_t size) {
  static const char kPrefix[] = "\0dapple/slot/";
  const size_t length = sizeof kPrefix - 1;
  return size >= offsetof(struct sockaddr_un, sun_path) + length && memcmp(address->sun_path, kPrefix, length) == 0;
}

/* A connection between two slots: one end has the name of its slot, and the other end's peer has it. */
static bool is_link(int fd) {
  struct sockaddr_un own, peer;
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (getpeername(fd, (struct sockaddr*)&peer, &peer_size) != 0) return false;
  if (getsockname(fd, (struct sockaddr*)&own, &own_size) != 0) return false;
  return is_name_of_slot(&own, own_size) || is_name_of_slot(&peer, peer_size);
}

struct descriptors count_descriptors(void) {
  struct descriptors count = {0, 0, 0};
  DIR* open = opendir("/proc/self/fd");
  const struct dirent* entry;
  while (open && (entry = readdir(open)) != NULL) {
    const int fd = atoi(entry->d_name);
    const int domain = option(fd, SO_DOMAIN);
    if (entry->d_name[0] == '.' || fd == dirfd(open)) continue;
    if ((domain == AF_INET || domain == AF_INET6) && option(fd, SO_TYPE) == SOCK_DGRAM) {
      ++count.udp_sockets;
    } else if (domain == AF_UNIX && is_link(fd)) {
      ++count.links;
    } else {
      ++count.others;
    }
  }
  if (open) closedir(open);
  return count;
}

int other_descriptors_settle(int expected) {
  int found = count_descriptors().others;
  for (int tries = 0; tries < 1000 && found != expected; ++tries) {
    usleep(10000);
    found = count_descriptors().others;
  }
  return found;
}
