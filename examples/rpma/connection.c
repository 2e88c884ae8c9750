/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* Two sides connect, greet each other in the connection's private data, and disconnect. */
#include <string.h>

#include "common.h"

static const char question[] = "Is this the right address?";
static const char answer[] = "It is. Good-bye.";

static void check_text(struct rpma_conn_private_data data, const char* text, size_t size) {
  /* A network may have added zeros. */
  check(data.len >= size && memcmp(data.ptr, text, size) == 0, "the private data");
}

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_ep* ep = NULL;
  struct rpma_conn_req* request = NULL;
  struct rpma_conn* conn = NULL;
  struct rpma_conn_private_data data = {NULL, 0};
  char text[sizeof answer];
  must(rpma_ep_listen(peer, address, port, &ep), "rpma_ep_listen");
  must(rpma_ep_next_conn_req(ep, NULL, &request), "rpma_ep_next_conn_req");
  must(rpma_conn_req_get_private_data(request, &data), "rpma_conn_req_get_private_data");
  check_text(data, question, sizeof question);
  memcpy(text, answer, sizeof answer);
  data.ptr = text;
  data.len = sizeof answer;
  must(rpma_conn_req_connect(&request, &data, &conn), "rpma_conn_req_connect");
  expect_event(conn, RPMA_CONN_ESTABLISHED);
  /* The request's private data belongs to the connection now. */
  must(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
  check_text(data, question, sizeof question);
  wait_hang_up(&conn);
  must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  const struct first_recv none = {NULL, 0};
  struct rpma_conn* conn = NULL;
  struct rpma_conn_private_data data = {NULL, 0};
  struct offer greeting;
  memset(&greeting, 0, sizeof greeting);
  memcpy(&greeting, question, sizeof question);
  conn = connect_to(peer, address, port, NULL, none, &greeting);
  must(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
  check_text(data, answer, sizeof answer);
  hang_up(&conn);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}
