/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A server with several clients at once, in one thread: every descriptor is non-blocking and in one epoll set. Each
 * client writes its own pattern to its own part of the server's memory, and reports it with a message, which the server
 * answers. The client here has several threads with a connection each.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common.h"

#define CLIENTS 4
#define PART (REGION_SIZE / CLIENTS)
#define SIZE 700

struct guest {
  struct rpma_conn* conn;
  int event_fd;
  int cq_fd;
  bool served;
};

static void watch(int epoll, int fd) {
  struct epoll_event event;
  memset(&event, 0, sizeof event);
  event.events = EPOLLIN;
  event.data.fd = fd;
  check(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0, "fcntl");
  check(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
}

static void let_in(int epoll, struct rpma_ep* ep, struct rpma_mr_local* inbox, const struct offer* offer,
                   struct guest* guests, size_t* count) {
  for (;;) {
    struct rpma_conn_req* request = NULL;
    struct offer copy = *offer;
    struct rpma_conn_private_data data = {&copy, sizeof copy};
    const int result = rpma_ep_next_conn_req(ep, NULL, &request);
    struct guest* guest = &guests[*count];
    if (result == RPMA_E_NO_EVENT) return;
    must(result, "rpma_ep_next_conn_req");
    check(*count < CLIENTS, "too many clients");
    must(rpma_conn_req_recv(request, inbox, *count, 1, NULL), "rpma_conn_req_recv");
    must(rpma_conn_req_connect(&request, &data, &guest->conn), "rpma_conn_req_connect");
    must(rpma_conn_get_event_fd(guest->conn, &guest->event_fd), "rpma_conn_get_event_fd");
    must(rpma_cq_get_fd(cq_of(guest->conn), &guest->cq_fd), "rpma_cq_get_fd");
    watch(epoll, guest->event_fd);
    watch(epoll, guest->cq_fd);
    ++*count;
  }
}

/*
 * The message is one byte, the number of the written part. The client disconnects only after it has the answer, so the
 * answer's completion is ignored; it is an error if the client was faster.
 */
static void serve_message(struct guest* guest, const unsigned char* memory, unsigned char part) {
  check(part < CLIENTS, "the number of a part");
  check_filled(memory + (size_t)part * PART, SIZE, part, "what a client wrote");
  must(rpma_send(guest->conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_send");
  guest->served = true;
}

/* The message belongs to the device until its completion has been taken. */
static void take_completions(struct guest* guest, const unsigned char* memory, const unsigned char* message) {
  struct rpma_cq* cq = cq_of(guest->conn);
  struct ibv_wc wc;
  const int result = rpma_cq_wait(cq);
  if (result == RPMA_E_NO_COMPLETION) return;
  must(result, "rpma_cq_wait");
  while (!guest->served && take_completion(cq, &wc)) {
    if (wc.opcode == IBV_WC_RECV) serve_message(guest, memory, *message);
  }
}

/* True if the client has left. */
static bool take_events(struct guest* guest) {
  enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
  const int result = rpma_conn_next_event(guest->conn, &event);
  if (result == RPMA_E_NO_EVENT) return false;
  must(result, "rpma_conn_next_event");
  if (event == RPMA_CONN_ESTABLISHED) return false;
  check(event == RPMA_CONN_CLOSED && guest->served, "a client left too early");
  must(rpma_conn_disconnect(guest->conn), "rpma_conn_disconnect");
  must(rpma_conn_delete(&guest->conn), "rpma_conn_delete");
  return true;
}

static void server(const char* address, const char* port) {
  struct rpma_peer* peer = local_peer(address);
  struct rpma_mr_local* mr = NULL;
  struct rpma_mr_local* inbox_mr = NULL;
  unsigned char* memory = new_region(peer, RPMA_MR_USAGE_WRITE_DST, &mr);
  unsigned char* inbox = new_region(peer, RPMA_MR_USAGE_RECV, &inbox_mr);
  struct guest guests[CLIENTS];
  struct rpma_ep* ep = NULL;
  struct offer offer;
  size_t count = 0;
  size_t left = 0;
  int ep_fd = -1;
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  memset(guests, 0, sizeof guests);
  make_offer(mr, false, &offer);
  must(rpma_ep_listen(peer, address, port, &ep), "rpma_ep_listen");
  must(rpma_ep_get_fd(ep, &ep_fd), "rpma_ep_get_fd");
  watch(epoll, ep_fd);
  while (left < CLIENTS) {
    struct epoll_event ready;
    if (epoll_wait(epoll, &ready, 1, -1) != 1) continue;
    if (ready.data.fd == ep_fd) let_in(epoll, ep, inbox_mr, &offer, guests, &count);
    for (size_t i = 0; i < count; ++i) {
      struct guest* guest = &guests[i];
      if (!guest->conn) continue;
      if (ready.data.fd == guest->cq_fd) {
        take_completions(guest, memory, &inbox[i]);
        if (guest->served) check(epoll_ctl(epoll, EPOLL_CTL_DEL, guest->cq_fd, NULL) == 0, "epoll_ctl");
      }
      if (ready.data.fd == guest->event_fd && take_events(guest)) ++left;
    }
  }
  close(epoll);
  must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
  free_region(inbox, &inbox_mr);
  free_region(memory, &mr);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

struct visit {
  const char* address;
  const char* port;
  struct rpma_peer* peer;
  unsigned char part;
  pthread_t thread;
};

/* Only one thread at a time may make regions and requests of one peer. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static void* visit_server(void* argument) {
  const struct visit* visit = argument;
  struct rpma_mr_local* mr = NULL;
  struct rpma_mr_remote* theirs = NULL;
  struct rpma_conn* conn = NULL;
  struct first_recv recv = {NULL, 0};
  unsigned char* memory;
  pthread_mutex_lock(&making);
  memory = new_region(visit->peer, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr);
  recv.mr = mr;
  conn = connect_to(visit->peer, visit->address, visit->port, NULL, recv, NULL);
  pthread_mutex_unlock(&making);
  theirs = take_offer(conn);
  fill(memory, SIZE, visit->part);
  memory[SIZE] = visit->part;
  must(rpma_write(conn, theirs, (size_t)visit->part * PART, mr, 0, SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL),
       "rpma_write");
  must(rpma_send(conn, mr, SIZE, 1, RPMA_F_COMPLETION_ON_ERROR, NULL), "rpma_send");
  /* The answer arrives in the receive that was posted before the connection. */
  check(complete(cq_of(conn), mr).byte_len == 0, "the answer's length");
  must(rpma_mr_remote_delete(&theirs), "rpma_mr_remote_delete");
  hang_up(&conn);
  pthread_mutex_lock(&making);
  free_region(memory, &mr);
  pthread_mutex_unlock(&making);
  return NULL;
}

static void client(const char* address, const char* port) {
  struct rpma_peer* peer = remote_peer(address);
  struct visit visits[CLIENTS];
  for (size_t i = 0; i < CLIENTS; ++i) {
    visits[i].address = address;
    visits[i].port = port;
    visits[i].peer = peer;
    visits[i].part = (unsigned char)i;
    check(pthread_create(&visits[i].thread, NULL, visit_server, &visits[i]) == 0, "no thread");
  }
  for (size_t i = 0; i < CLIENTS; ++i) pthread_join(visits[i].thread, NULL);
  must(rpma_peer_delete(&peer), "rpma_peer_delete");
}

int main(int argc, char** argv) {
  return run_example(argc, argv, server, client);
}
