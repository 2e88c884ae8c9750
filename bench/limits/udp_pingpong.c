/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bench-udp-pingpong PORT ROUND-TRIPS [SERVER]: plain UDP sockets that poll, without a protocol. A program without
 * SERVER is the server. The client prints the average of half a round trip in us. Each message is two packets, as in an
 * exchange over a reliable connection: a Send of 8 bytes, with BTH, payload and ICRC, and the acknowledgement of the
 * last one, with BTH, AETH and ICRC. The kernel cuts them out of one datagram and merges them again, and the sockets
 * are not connected, all as on the software device. A TCP connection begins and ends the exchange.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SEND_BYTES 24
#define ACKNOWLEDGEMENT_BYTES 20
#define MESSAGE_BYTES (SEND_BYTES + ACKNOWLEDGEMENT_BYTES)
/* Of <linux/udp.h>. */
#define SEGMENT 103
#define MERGE 104

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

/* A UDP socket with the address and port of that connection. */
static int make_udp(int tcp, struct sockaddr_in* peer) {
  struct sockaddr_in own;
  socklen_t size = sizeof own;
  check(getsockname(tcp, (struct sockaddr*)&own, &size) == 0, "getsockname");
  size = sizeof *peer;
  check(getpeername(tcp, (struct sockaddr*)peer, &size) == 0, "getpeername");
  const int udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  check(udp >= 0 && bind(udp, (struct sockaddr*)&own, sizeof own) == 0, "bind");
  const int one = 1;
  check(setsockopt(udp, IPPROTO_UDP, MERGE, &one, sizeof one) == 0, "UDP_GRO");
  check(setsockopt(udp, IPPROTO_IP, IP_PKTINFO, &one, sizeof one) == 0, "IP_PKTINFO");
  return udp;
}

/* Waits until the peer has come as far as this program. */
static void agree(int tcp) {
  char byte = 0;
  check(write(tcp, &byte, 1) == 1 && read(tcp, &byte, 1) == 1, "the peer has ended");
}

static void take(int udp) {
  char packets[MESSAGE_BYTES];
  char control[256];
  struct sockaddr_in from;
  struct iovec part = {packets, sizeof packets};
  ssize_t size = 0;
  /* The kernel may deliver the two packets one by one. */
  for (ssize_t taken = 0; taken < MESSAGE_BYTES; taken += size) {
    do {
      struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1};
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      size = recvmsg(udp, &message, MSG_DONTWAIT);
    } while (size < 0 && errno == EAGAIN);
    check(size > 0, "recvmsg");
  }
}

static void give(int udp, struct sockaddr_in* peer) {
  char packets[MESSAGE_BYTES] = {0};
  union {
    char bytes[CMSG_SPACE(sizeof(uint16_t))];
    struct cmsghdr header;
  } control = {{0}};
  struct iovec part = {packets, sizeof packets};
  struct msghdr message = {.msg_name = peer, .msg_namelen = sizeof *peer, .msg_iov = &part, .msg_iovlen = 1};
  const uint16_t segment = SEND_BYTES;
  control.header.cmsg_level = IPPROTO_UDP;
  control.header.cmsg_type = SEGMENT;
  control.header.cmsg_len = CMSG_LEN(sizeof segment);
  memcpy(CMSG_DATA(&control.header), &segment, sizeof segment);
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  check(sendmsg(udp, &message, 0) == MESSAGE_BYTES, "sendmsg");
}

int main(int argc, char** argv) {
  const char* server = argc == 4 ? argv[3] : NULL;
  if (argc < 3 || argc > 4) return fprintf(stderr, "usage: bench-udp-pingpong PORT ROUND-TRIPS [SERVER]\n"), 2;
  const long count = strtol(argv[2], NULL, 10);
  const int tcp = meet(server, (uint16_t)strtoul(argv[1], NULL, 10));
  struct sockaddr_in peer;
  const int udp = make_udp(tcp, &peer);
  agree(tcp);
  const double begin = now_us();
  for (long i = 0; i < count; ++i) {
    if (server != NULL) give(udp, &peer);
    take(udp);
    if (server == NULL) give(udp, &peer);
  }
  if (server != NULL) printf("%.3f\n", (now_us() - begin) / 2 / (double)count);
  agree(tcp);
  return 0;
}
