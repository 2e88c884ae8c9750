// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// squatter port|name|listen|slots: holds a thing that dappled needs, says so, and waits for the end of its input.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int hold_name(int type, const char* name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t length = strlen(name);
  memcpy(address.sun_path + 1, name, length);
  const int fd = socket(AF_UNIX, type, 0);
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  return bind(fd, (struct sockaddr*)&address, size) == 0 ? fd : -1;
}

static int hold_slots(void) {
  struct rlimit limit = {2048, 2048};
  setrlimit(RLIMIT_NOFILE, &limit);
  int last = -1;
  for (int slot = 1; slot < 1151; slot++) {
    char name[32];
    snprintf(name, sizeof name, "dapple/slot/%d", slot);
    last = hold_name(SOCK_STREAM, name);
    if (last < 0) return -1;
  }
  return last;
}

static int hold_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(4791)};
  const int fd = socket(AF_INET, SOCK_DGRAM, 0);
  return bind(fd, (struct sockaddr*)&address, sizeof address) == 0 ? fd : -1;
}

int main(int count, char** words) {
  int fd = -1;
  if (count != 2) return 2;
  if (strcmp(words[1], "port") == 0) fd = hold_port();
  if (strcmp(words[1], "slots") == 0) fd = hold_slots();
  if (strcmp(words[1], "name") == 0 || strcmp(words[1], "listen") == 0) fd = hold_name(SOCK_SEQPACKET, "dapple");
  if (strcmp(words[1], "listen") == 0 && fd >= 0 && listen(fd, 100) != 0) fd = -1;
  if (fd < 0) {
    perror(words[1]);
    return 1;
  }
  puts("ready");
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  return 0;
}
