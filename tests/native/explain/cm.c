/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
 * SPDX-FileCopyrightText: The dapple authors
 *
 * explain-cm CASE: makes one call of librdmacm that fails, or one attempt to connect that fails, and exits with 0 if it
 * has failed as expected. "right" makes no mistake. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/native/explain/mistake.h"

enum { kPort = 7174, kTimeout = 2000 };

static const char* const kRefusedByLibrary[] = {"unknown-family",
                                                "infiniband",
                                                "infiniband-resolved",
                                                "infiniband-late",
                                                "no-device",
                                                "second-queue-pair",
                                                "depth",
                                                "channel-of-own",
                                                "establish",
                                                "ece",
                                                "no-event",
                                                "left-twice",
                                                "name",
                                                NULL};

static struct rdma_event_channel* channel;

static int is_one_of(const char* const* names) {
  while (*names != NULL && !IS(*names)) names++;
  return *names != NULL;
}

static struct sockaddr_in address(const char* host, uint16_t port) {
  struct sockaddr_in made = {.sin_family = AF_INET, .sin_port = htons(port)};
  MUST(inet_pton(AF_INET, host, &made.sin_addr) == 1);
  return made;
}

static struct rdma_cm_id* make_id(void) {
  struct rdma_cm_id* id = NULL;
  MUST(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
  return id;
}

static int bind_to(struct rdma_cm_id* id, const char* host, uint16_t port) {
  struct sockaddr_in own = address(host, port);
  return rdma_bind_addr(id, (struct sockaddr*)&own);
}

static int resolve(struct rdma_cm_id* id, const char* host, int milliseconds) {
  struct sockaddr_in peer = address(host, kPort);
  return rdma_resolve_addr(id, NULL, (struct sockaddr*)&peer, milliseconds);
}

/* Returns the status of the next event, which must be of this kind, and its id. */
static int await(enum rdma_cm_event_type type, struct rdma_cm_id** id) {
  struct rdma_cm_event* event = NULL;
  MUST(rdma_get_cm_event(channel, &event) == 0);
  if (event->event != type) printf("%s\n", rdma_event_str(event->event));
  MUST(event->event == type);
  const int status = event->status;
  if (id != NULL) *id = event->id;
  MUST(rdma_ack_cm_event(event) == 0);
  return status;
}

static void fails(int result, int error) {
  const int errno_of_call = errno;
  if (result != -1 || errno_of_call != error) printf("%d, %s\n", result, strerror(errno_of_call));
  MUST(result == -1 && errno_of_call == error);
}

static struct rdma_cm_id* resolved(void) {
  struct rdma_cm_id* id = make_id();
  MUST(resolve(id, "127.0.0.1", kTimeout) == 0 && await(RDMA_CM_EVENT_ADDR_RESOLVED, NULL) == 0);
  return id;
}

static struct rdma_cm_id* routed(void) {
  struct rdma_cm_id* id = resolved();
  MUST(rdma_resolve_route(id, kTimeout) == 0 && await(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL) == 0);
  return id;
}

static struct rdma_cm_id* with_queue_pair(void) {
  struct rdma_cm_id* id = routed();
  struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RC};
  MUST(rdma_create_qp(id, NULL, &attr) == 0);
  return id;
}

static struct rdma_cm_id* listener(void) {
  struct rdma_cm_id* id = make_id();
  MUST(bind_to(id, "127.0.0.1", kPort) == 0 && rdma_listen(id, 1) == 0);
  return id;
}

static void end(struct rdma_cm_id* id) {
  if (id->qp != NULL) rdma_destroy_qp(id);
  MUST(rdma_destroy_id(id) == 0);
}

static void call_in_vain(void) {
  struct rdma_cm_id* id = make_id();
  struct rdma_cm_id* other = NULL;
  struct rdma_conn_param parameters = {0};
  char bytes[200] = {0};
  if (IS("foreign-address")) fails(bind_to(id, "192.0.2.1", 0), EADDRNOTAVAIL);
  if (IS("bound-twice")) {
    MUST(bind_to(id, "127.0.0.1", 0) == 0);
    fails(bind_to(id, "127.0.0.1", 0), EINVAL);
  }
  if (IS("port-in-use")) {
    other = listener();
    fails(bind_to(id, "127.0.0.1", kPort), EADDRINUSE);
  }
  if (IS("no-route")) fails(resolve(id, "192.0.2.1", kTimeout), ENETUNREACH);
  if (IS("route-early")) {
    MUST(bind_to(id, "10.99.0.1", 0) == 0);
    fails(rdma_resolve_route(id, kTimeout), EINVAL);
  }
  if (IS("connected-early")) {
    other = resolved();
    fails(rdma_connect(other, &parameters), EINVAL);
  }
  if (IS("accepted-early")) {
    other = routed();
    fails(rdma_accept(other, &parameters), EINVAL);
  }
  if (IS("private-data")) {
    other = with_queue_pair();
    parameters.private_data = bytes;
    parameters.private_data_len = sizeof bytes;
    fails(rdma_connect(other, &parameters), EINVAL);
  }
  if (IS("disconnected-early")) {
    other = with_queue_pair();
    fails(rdma_disconnect(other), EINVAL);
  }
  if (IS("option-size")) fails(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, bytes, 4), EINVAL);
  if (IS("option-unknown")) fails(rdma_set_option(id, RDMA_OPTION_ID, 99, bytes, 4), ENOSYS);
  if (IS("planned")) fails(rdma_listen(id, 1), ENODEV);
  if (other != NULL) end(other);
  end(id);
}

/* Calls that librdmacm refuses itself. */
static void call_library_in_vain(void) {
  static const char* const kOfNewId[] = {"no-device",  "unknown-family",      "channel-of-own",
                                         "infiniband", "infiniband-resolved", NULL};
  struct rdma_cm_id* id = is_one_of(kOfNewId) ? make_id() : with_queue_pair();
  struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RC};
  struct rdma_conn_param parameters = {.initiator_depth = 200};
  struct sockaddr_in other = {.sin_family = AF_UNIX};
  struct ibv_ece ece = {0};
  struct sockaddr_ib infiniband = {
      .sib_family = AF_IB, .sib_pkey = 0xFFFF, .sib_addr = {.sib_addr32 = {0x80FE, 0, 0, 1}}};
  if (IS("infiniband")) fails(rdma_bind_addr(id, (struct sockaddr*)&infiniband), ENODEV);
  if (IS("infiniband-resolved")) fails(rdma_resolve_addr(id, NULL, (struct sockaddr*)&infiniband, kTimeout), ENODEV);
  if (IS("infiniband-late")) fails(rdma_resolve_addr(id, NULL, (struct sockaddr*)&infiniband, kTimeout), EINVAL);
  if (IS("unknown-family")) fails(rdma_bind_addr(id, (struct sockaddr*)&other), EINVAL);
  if (IS("no-device")) {
    struct rdma_cm_id* bound = resolved();
    struct ibv_pd* pd = ibv_alloc_pd(bound->verbs);
    MUST(pd != NULL);
    fails(rdma_create_qp(id, pd, &attr), EINVAL);
    MUST(ibv_dealloc_pd(pd) == 0);
    end(bound);
  }
  if (IS("second-queue-pair")) fails(rdma_create_qp(id, NULL, &attr), EINVAL);
  if (IS("depth")) fails(rdma_connect(id, &parameters), EINVAL);
  if (IS("channel-of-own")) {
    struct rdma_cm_id* request = NULL;
    MUST(bind_to(id, "127.0.0.1", kPort) == 0 && rdma_listen(id, 1) == 0);
    fails(rdma_get_request(id, &request), EINVAL);
  }
  if (IS("establish")) fails(rdma_establish(id), EINVAL);
  if (IS("ece")) fails(rdma_set_local_ece(id, &ece), EINVAL);
  if (IS("no-event")) fails(rdma_ack_cm_event(NULL), EINVAL);
  if (IS("left-twice")) {
    other = address("239.1.2.3", 0);
    fails(rdma_leave_multicast(id, (struct sockaddr*)&other), EADDRNOTAVAIL);
  }
  if (IS("name")) {
    struct rdma_addrinfo* found = NULL;
    MUST(rdma_getaddrinfo("127.0.0.1", "no-such-service", NULL, &found) != 0);
  }
  end(id);
}

/* An event channel without an event, for a program that asks without waiting. */
static void ask_without_waiting(void) {
  struct rdma_cm_event* event = NULL;
  MUST(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  fails(rdma_get_cm_event(channel, &event), EAGAIN);
}

static void connect_in_vain(void) {
  struct rdma_conn_param parameters = {0};
  struct rdma_cm_id* id = NULL;
  struct rdma_cm_id* server = NULL;
  struct rdma_cm_id* request = NULL;
  if (IS("no-neighbour")) {
    id = make_id();
    MUST(resolve(id, "10.99.0.2", 100) == 0 && await(RDMA_CM_EVENT_ADDR_ERROR, NULL) == -ETIMEDOUT);
  } else {
    if (IS("rejected")) server = listener();
    id = with_queue_pair();
    MUST(rdma_connect(id, &parameters) == 0);
    if (server != NULL) {
      MUST(await(RDMA_CM_EVENT_CONNECT_REQUEST, &request) == 0 && rdma_reject(request, NULL, 0) == 0);
      end(request);
      end(server);
    }
    MUST(await(RDMA_CM_EVENT_REJECTED, NULL) == (server != NULL ? 28 : 8));
  }
  end(id);
}

/* A resolution of a port at which nobody listens for datagrams. */
static void send_datagrams_in_vain(void) {
  struct rdma_conn_param parameters = {0};
  struct rdma_cm_id* id = NULL;
  MUST(rdma_create_id(channel, &id, NULL, RDMA_PS_UDP) == 0);
  MUST(resolve(id, "127.0.0.1", kTimeout) == 0 && await(RDMA_CM_EVENT_ADDR_RESOLVED, NULL) == 0);
  MUST(rdma_resolve_route(id, kTimeout) == 0 && await(RDMA_CM_EVENT_ROUTE_RESOLVED, NULL) == 0);
  MUST(rdma_connect(id, &parameters) == 0 && await(RDMA_CM_EVENT_UNREACHABLE, NULL) == 1);
  end(id);
}

/* A message may come before the server's last message of the handshake, or after it. */
static void notify_late(void) {
  struct rdma_conn_param parameters = {0};
  struct rdma_cm_id *server = listener(), *id = with_queue_pair(), *request = NULL;
  struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RC};
  MUST(rdma_connect(id, &parameters) == 0 && await(RDMA_CM_EVENT_CONNECT_REQUEST, &request) == 0);
  MUST(rdma_create_qp(request, NULL, &attr) == 0 && rdma_accept(request, &parameters) == 0);
  MUST(await(RDMA_CM_EVENT_ESTABLISHED, NULL) == 0 && await(RDMA_CM_EVENT_ESTABLISHED, NULL) == 0);
  fails(rdma_notify(request, IBV_EVENT_COMM_EST), EISCONN);
  end(id);
  end(request);
  end(server);
}

/* Both ends tell the other of queue pair 0. */
static void connect_nothing(void) {
  struct rdma_conn_param parameters = {0};
  struct rdma_cm_id *server = listener(), *id = routed(), *request = NULL;
  MUST(rdma_connect(id, &parameters) == 0 && await(RDMA_CM_EVENT_CONNECT_REQUEST, &request) == 0);
  MUST(rdma_accept(request, &parameters) == 0);
  end(id);
  end(request);
  end(server);
}

/* The request is over when the server answers. It may have ended it itself, as here, or the client may have. */
static void answer_late(void) {
  struct rdma_conn_param parameters = {0};
  struct rdma_cm_id *server = listener(), *id = with_queue_pair(), *request = NULL;
  struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RC};
  MUST(rdma_connect(id, &parameters) == 0 && await(RDMA_CM_EVENT_CONNECT_REQUEST, &request) == 0);
  MUST(rdma_create_qp(request, NULL, &attr) == 0);
  MUST(rdma_reject(request, NULL, 0) == 0 && await(RDMA_CM_EVENT_REJECTED, NULL) == 28);
  if (IS("accepted-late")) fails(rdma_accept(request, &parameters), EINVAL);
  if (IS("rejected-late")) fails(rdma_reject(request, NULL, 0), EINVAL);
  end(id);
  end(request);
  end(server);
}

static void lose_device(void) {
  struct rdma_cm_id* id = make_id();
  MUST(bind_to(id, "10.99.0.1", 0) == 0 && system("ip link delete va") == 0);
  MUST(await(RDMA_CM_EVENT_DEVICE_REMOVAL, NULL) == 0);
  end(id);
}

/* A synchronous id: librdmacm reads the events itself. */
static void connect_synchronously(void) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
  struct rdma_addrinfo* found = NULL;
  struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RC};
  struct rdma_cm_id* id = NULL;
  MUST(rdma_getaddrinfo("127.0.0.1", "7174", &hints, &found) == 0);
  MUST(rdma_create_ep(&id, found, NULL, &attr) == 0);
  fails(rdma_connect(id, NULL), ECONNREFUSED);
  rdma_destroy_ep(id);
  rdma_freeaddrinfo(found);
}

int main(int argc, char** argv) {
  MUST(argc == 2);
  mistake = argv[1];
  if (IS("synchronous")) {
    connect_synchronously();
    return 0;
  }
  MUST((channel = rdma_create_event_channel()) != NULL);
  if (IS("right")) {
    end(with_queue_pair());
    ask_without_waiting();
  } else if (IS("nobody-listens") || IS("rejected") || IS("no-neighbour")) {
    connect_in_vain();
  } else if (is_one_of(kRefusedByLibrary)) {
    call_library_in_vain();
  } else if (IS("without-queue-pair")) {
    connect_nothing();
  } else if (IS("notified-late")) {
    notify_late();
  } else if (IS("accepted-late") || IS("rejected-late")) {
    answer_late();
  } else if (IS("datagrams")) {
    send_datagrams_in_vain();
  } else if (IS("removal")) {
    lose_device();
  } else {
    call_in_vain();
  }
  rdma_destroy_event_channel(channel);
  return 0;
}
