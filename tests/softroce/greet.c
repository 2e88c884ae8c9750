/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * greet ADDRESS QUALIFIER HEX: asks for a connection with that private data, and prints the answer: the event, and the
 * printable bytes. So a test can send data that the dapple tools would not send.
 */
#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softroce/session.h"

enum { kTimeout_s = 20, kMaxGreeting = 56 };

static DAT_COUNT from_hex(const char* hex, unsigned char* bytes) {
  DAT_COUNT size = 0;
  for (; size < kMaxGreeting && isxdigit((unsigned char)hex[0]) && isxdigit((unsigned char)hex[1]); hex += 2) {
    const char digits[] = {hex[0], hex[1], '\0'};
    bytes[size++] = (unsigned char)strtoul(digits, NULL, 16);
  }
  if (*hex != '\0') {
    fail("%s: not up to %d bytes in hexadecimal", hex, kMaxGreeting);
  }
  return size;
}

int main(int argc, char** argv) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo* server = NULL;
  struct session session;
  unsigned char greeting[kMaxGreeting];
  DAT_EVENT event;
  const DAT_CONNECTION_EVENT_DATA* data = &event.event_data.connect_event_data;
  set_role("greet");
  if (argc != 4) {
    fail("usage: greet ADDRESS QUALIFIER HEX");
  }
  if (getaddrinfo(argv[1], NULL, &hints, &server) != 0) {
    fail("%s is no address", argv[1]);
  }
  const DAT_COUNT size = from_hex(argv[3], greeting);
  session_open(&session, kTimeout_s);
  must(dat_ep_connect(session.ep, server->ai_addr, strtoull(argv[2], NULL, 10), kTimeout_s * 1000000u, size, greeting,
                      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect");
  await_event(&session, session.connection_evd, "the server's answer", &event);
  printf("event 0x%x: ", (unsigned)event.event_number);
  const unsigned char* answer = data->private_data;
  for (DAT_COUNT i = 0; i < data->private_data_size; i++) {
    if (isprint(answer[i])) {
      putchar(answer[i]);
    }
  }
  putchar('\n');
  session_close(&session);
  freeaddrinfo(server);
  return 0;
}
