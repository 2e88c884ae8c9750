/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bench-udp-pingpong PORT ROUND-TRIPS [SERVER]: plain UDP sockets that poll, without a protocol. A program without
 * SERVER is the server. The client prints the average of half a round trip in us. The packets are as long as those of
 * an RC Send of 8 bytes: BTH, payload and ICRC. A TCP connection begins and ends the exchange.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PACKET_BYTES 24

static void check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "bench-udp-pingpong: %s: %s\n", what, strerror(errno));
  exit(1);
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Makes the TCP connection. */
static int meet(const char* server, uint16_t port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  const int one = 1;
  int socket_fd = socket(AF_INET, SOCK_STREAM, 0);
  check(socket_fd >= 0, "socket");
  if (server != NULL) {
    check(inet_pton(AF_INET, server, &address.sin_addr) == 1, server);
    check(connect(socket_fd, (struct sockaddr*)&address, sizeof address) == 0, "connect");
    return socket_fd;
  }
  setsockopt(socket_fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  check(bind(socket_fd, (struct sockaddr*)&address, sizeof address) == 0 && listen(socket_fd, 1) == 0, "listen");
  const int accepted = accept(socket_fd, NULL, NULL);
  check(accepted >= 0, "accept");
  close(socket_fd);
  return accepted;
}

/* A UDP socket between the addresses and ports of that connection. */
static int make_udp(int tcp) {
  struct sockaddr_in own, peer;
  socklen_t size = sizeof own;
  check(getsockname(tcp, (struct sockaddr*)&own, &size) == 0, "getsockname");
  size = sizeof peer;
  check(getpeername(tcp, (struct sockaddr*)&peer, &size) == 0, "getpeername");
  const int udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  check(udp >= 0 && bind(udp, (struct sockaddr*)&own, sizeof own) == 0, "bind");
  check(connect(udp, (struct sockaddr*)&peer, sizeof peer) == 0, "connect");
  return udp;
}

/* Waits until the peer has come as far as this program. */
static void agree(int tcp) {
  char byte = 0;
  check(write(tcp, &byte, 1) == 1 && read(tcp, &byte, 1) == 1, "the peer has ended");
}

static void take(int udp) {
  char packet[PACKET_BYTES];
  ssize_t size;
  do {
    size = recv(udp, packet, sizeof packet, 0);
  } while (size < 0 && errno == EAGAIN);
  check(size == PACKET_BYTES, "recv");
}

static void give(int udp) {
  const char packet[PACKET_BYTES] = {0};
  check(send(udp, packet, sizeof packet, 0) == PACKET_BYTES, "send");
}

int main(int argc, char** argv) {
  const char* server = argc == 4 ? argv[3] : NULL;
  if (argc < 3 || argc > 4) return fprintf(stderr, "usage: bench-udp-pingpong PORT ROUND-TRIPS [SERVER]\n"), 2;
  const long count = strtol(argv[2], NULL, 10);
  const int tcp = meet(server, (uint16_t)strtoul(argv[1], NULL, 10));
  const int udp = make_udp(tcp);
  agree(tcp);
  const double begin = now_us();
  for (long i = 0; i < count; ++i) {
    if (server != NULL) give(udp);
    take(udp);
    if (server == NULL) give(udp);
  }
  if (server != NULL) printf("%.3f\n", (now_us() - begin) / 2 / (double)count);
  agree(tcp);
  return 0;
}
