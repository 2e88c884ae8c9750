// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// tcp_exchange server|client ADDRESS: a program of TCP sockets that knows nothing of RDMA. The client sends 32 MiB of
// known bytes, the server sends them back, and both compare each byte.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kPort = 7780, kPiece = 64 * 1024, kPieces = 512 };

static unsigned char piece[kPiece];

static int failed(const char* what) {
  perror(what);
  return 1;
}

static unsigned char byte_at(int number, int place) {
  return (unsigned char)(number * 31 + place * 7 + place / 256);
}

static int send_piece(int peer, int number) {
  for (int i = 0; i < kPiece; i++) piece[i] = byte_at(number, i);
  for (size_t done = 0; done < kPiece;) {
    const ssize_t sent = send(peer, piece + done, kPiece - done, 0);
    if (sent <= 0) return failed("send");
    done += (size_t)sent;
  }
  return 0;
}

static int receive_piece(int peer, int number) {
  for (size_t done = 0; done < kPiece;) {
    const ssize_t got = recv(peer, piece + done, kPiece - done, 0);
    if (got <= 0) return failed("recv");
    done += (size_t)got;
  }
  for (int i = 0; i < kPiece; i++) {
    if (piece[i] == byte_at(number, i)) continue;
    fprintf(stderr, "piece %d: byte %d is wrong\n", number, i);
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(kPort)};
  if (argc != 3 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1) {
    fprintf(stderr, "usage: tcp_exchange server|client ADDRESS\n");
    return 2;
  }
  const int is_server = strcmp(argv[1], "server") == 0;
  // So the socket gets the number 3, as in a program that a shell starts. The child that starts dappled uses 3 itself.
  close(3);
  const int own = socket(AF_INET, SOCK_STREAM, 0);
  if (own < 0) return failed("socket");
  int peer = own;
  if (is_server) {
    if (bind(own, (struct sockaddr*)&address, sizeof address) != 0 || listen(own, 1) != 0) return failed("listen");
    peer = accept(own, NULL, NULL);
    if (peer < 0) return failed("accept");
  } else if (connect(own, (struct sockaddr*)&address, sizeof address) != 0) {
    return failed("connect");
  }
  for (int number = 0; number < kPieces; number++) {
    if (!is_server && send_piece(peer, number) != 0) return 1;
    if (receive_piece(peer, number) != 0) return 1;
    if (is_server && send_piece(peer, number) != 0) return 1;
  }
  shutdown(peer, SHUT_RDWR);
  close(peer);
  if (is_server) close(own);
  printf("%d pieces are right\n", kPieces);
  return 0;
}
