/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * reject server QUALIFIER | reject client ADDRESS QUALIFIER: tests the answers to connection requests, and their
 * private data. The server rejects the first without private data, the second with some, and accepts the third with
 * some. Each side checks its events. QUALIFIER is the service's number.
 */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softroce/session.h"

enum { kTimeout_s = 20 };

/* Not a multiple of four, and a NUL inside: lengths count, not strings. */
static const char kRequest[] = "re\0quest";
static const char kRefusal[] = "no \0 thanks";
static const char kWelcome[] = "welcome";

struct attempt {
  DAT_EVENT_NUMBER outcome;
  const char* answer; /* private data that the client must find, NULL for none */
  DAT_COUNT answer_size;
};

static const struct attempt kAttempts[] = {
    {DAT_CONNECTION_EVENT_PEER_REJECTED, NULL, 0},
    {DAT_CONNECTION_EVENT_PEER_REJECTED, kRefusal, sizeof kRefusal},
    {DAT_CONNECTION_EVENT_ESTABLISHED, kWelcome, sizeof kWelcome},
};
enum { kAttemptCount = sizeof kAttempts / sizeof kAttempts[0] };

/* Private data may be padded with zeros to the transport's size, but must begin with the sent bytes. */
static void must_carry(const char* what, const void* data, DAT_COUNT size, const void* expected,
                       DAT_COUNT expected_size) {
  if (size < expected_size || (expected_size > 0 && memcmp(data, expected, (size_t)expected_size) != 0)) {
    fail("%s: %d bytes of private data, which are not the %d that the peer sent", what, (int)size, (int)expected_size);
  }
}

static void answer(struct session* session, DAT_EVD_HANDLE request_evd, DAT_CONN_QUAL qualifier,
                   const struct attempt* attempt) {
  DAT_EVENT event;
  DAT_CR_PARAM request;
  await_event(session, request_evd, "a connection request", &event);
  if (event.event_number != DAT_CONNECTION_REQUEST_EVENT) {
    fail("event 0x%x instead of a connection request", (unsigned)event.event_number);
  }
  if (event.event_data.cr_arrival_event_data.conn_qual != qualifier) {
    fail("a request for service %llu", (unsigned long long)event.event_data.cr_arrival_event_data.conn_qual);
  }
  DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;
  must(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request), "dat_cr_query");
  must_carry("request", request.private_data, request.private_data_size, kRequest, sizeof kRequest);
  DAT_PVOID data = (DAT_PVOID)(size_t)attempt->answer;
  if (attempt->outcome == DAT_CONNECTION_EVENT_ESTABLISHED) {
    must(dat_cr_accept(cr, session->ep, attempt->answer_size, data), "dat_cr_accept");
    await_connection(session);
    await_disconnection(session);
  } else {
    must(dat_cr_reject(cr, attempt->answer_size, data), "dat_cr_reject");
  }
}

static void run_server(DAT_CONN_QUAL qualifier) {
  struct session session;
  DAT_EVD_HANDLE request_evd = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  session_open(&session, kTimeout_s);
  must(dat_evd_create(session.ia, 4, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &request_evd), "dat_evd_create");
  must(dat_psp_create(session.ia, qualifier, request_evd, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
  puts("listening");
  fflush(stdout);
  for (int i = 0; i < kAttemptCount; i++) {
    answer(&session, request_evd, qualifier, &kAttempts[i]);
  }
  must(dat_psp_free(psp), "dat_psp_free");
  must(dat_evd_free(request_evd), "dat_evd_free");
  session_close(&session);
}

static void try_to_connect(const struct addrinfo* server, DAT_CONN_QUAL qualifier, const struct attempt* attempt) {
  struct session session;
  DAT_EVENT event;
  const DAT_CONNECTION_EVENT_DATA* data = &event.event_data.connect_event_data;
  session_open(&session, kTimeout_s);
  must(dat_ep_connect(session.ep, server->ai_addr, qualifier, kTimeout_s * 1000000u, sizeof kRequest,
                      (DAT_PVOID)(size_t)kRequest, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect");
  await_event(&session, session.connection_evd, "the server's answer", &event);
  if (event.event_number != attempt->outcome) {
    fail("event 0x%x instead of 0x%x", (unsigned)event.event_number, (unsigned)attempt->outcome);
  }
  must_carry("answer", data->private_data, data->private_data_size, attempt->answer, attempt->answer_size);
  if (attempt->outcome == DAT_CONNECTION_EVENT_ESTABLISHED) {
    must(dat_ep_disconnect(session.ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
    await_disconnection(&session);
  }
  session_close(&session);
}

static void run_client(const char* address, DAT_CONN_QUAL qualifier) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo* server = NULL;
  if (getaddrinfo(address, NULL, &hints, &server) != 0) {
    fail("%s is no address", address);
  }
  for (int i = 0; i < kAttemptCount; i++) {
    try_to_connect(server, qualifier, &kAttempts[i]);
  }
  freeaddrinfo(server);
}

static DAT_CONN_QUAL qualifier_of(const char* text) {
  char* end = NULL;
  DAT_CONN_QUAL qualifier = strtoull(text, &end, 10);
  if (qualifier == 0 || *end != '\0') {
    fail("%s is no service's number", text);
  }
  return qualifier;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "server") == 0) {
    set_role("reject server");
    run_server(qualifier_of(argv[2]));
  } else if (argc == 4 && strcmp(argv[1], "client") == 0) {
    set_role("reject client");
    run_client(argv[2], qualifier_of(argv[3]));
  } else {
    fail("usage: reject server QUALIFIER | reject client ADDRESS QUALIFIER");
  }
  puts("every answer was as it should be");
  return 0;
}
