/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * ended_id NAME: uses an rdma_cm_id after rdma_destroy_id() or rdma_destroy_ep(), an event channel after
 * rdma_destroy_event_channel(), a completion channel after ibv_destroy_comp_channel(), or an event after
 * rdma_ack_cm_event(), for dapple-run --check; or makes and destroys many; or destroys the ids of connection requests,
 * or some, or none.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

enum { kMany = 1000, kPort = 7175, kRequests = 3 };

static struct rdma_cm_id* make(struct rdma_event_channel* channel) {
  struct rdma_cm_id* id = NULL;
  return rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 ? id : NULL;
}

static int is_refused(int result) {
  return result == -1 && errno == EINVAL;
}

static struct sockaddr* own_address(void) {
  static struct sockaddr_in address;
  address.sin_family = AF_INET;
  address.sin_port = htons(kPort);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return (struct sockaddr*)&address;
}

static struct rdma_cm_event* await(struct rdma_event_channel* channel, enum rdma_cm_event_type type) {
  struct rdma_cm_event* event = NULL;
  return rdma_get_cm_event(channel, &event) == 0 && event->event == type ? event : NULL;
}

static int await_and_acknowledge(struct rdma_event_channel* channel, enum rdma_cm_event_type type) {
  struct rdma_cm_event* event = await(channel, type);
  return event != NULL && rdma_ack_cm_event(event) == 0;
}

/* The event of an attempt to connect, which the listener rejects. */
static struct rdma_cm_event* request(struct rdma_event_channel* channel, struct rdma_cm_id* id) {
  struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RC};
  struct rdma_conn_param parameters = {.private_data = "hello", .private_data_len = 6};
  if (rdma_resolve_addr(id, NULL, own_address(), 2000) != 0) return NULL;
  if (!await_and_acknowledge(channel, RDMA_CM_EVENT_ADDR_RESOLVED) || rdma_resolve_route(id, 2000) != 0) return NULL;
  if (!await_and_acknowledge(channel, RDMA_CM_EVENT_ROUTE_RESOLVED)) return NULL;
  if (rdma_create_qp(id, NULL, &attr) != 0 || rdma_connect(id, &parameters) != 0) return NULL;
  return await(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
}

/* Rejects requests. Those from `kept` on are not destroyed. */
static int reject(struct rdma_event_channel* channel, int kept) {
  struct rdma_cm_id* listener = make(channel);
  int is_good = listener != NULL && rdma_bind_addr(listener, own_address()) == 0 && rdma_listen(listener, 4) == 0;
  for (int i = 0; is_good && i < kRequests; i++) {
    struct rdma_cm_id* id = make(channel);
    struct rdma_cm_event* event = id == NULL ? NULL : request(channel, id);
    struct rdma_cm_id* got = event == NULL ? NULL : event->id;
    is_good = got != NULL && strcmp(event->param.conn.private_data, "hello") == 0 && rdma_ack_cm_event(event) == 0;
    if (is_good) is_good = rdma_reject(got, NULL, 0) == 0 && await_and_acknowledge(channel, RDMA_CM_EVENT_REJECTED);
    if (is_good && i < kept) is_good = rdma_destroy_id(got) == 0;
    if (id != NULL && id->qp != NULL) rdma_destroy_qp(id);
    if (is_good) is_good = rdma_destroy_id(id) == 0;
  }
  return is_good && rdma_destroy_id(listener) == 0;
}

/* An event that is used after its end keeps its contents. */
static int use_event(struct rdma_event_channel* channel, const char* name) {
  struct rdma_cm_id* id = make(channel);
  struct rdma_cm_event* event;
  int is_good = id != NULL && rdma_resolve_addr(id, NULL, own_address(), 2000) == 0 &&
                (event = await(channel, RDMA_CM_EVENT_ADDR_RESOLVED)) != NULL && rdma_ack_cm_event(event) == 0;
  if (is_good && strcmp(name, "event") == 0) is_good = event->event == RDMA_CM_EVENT_ADDR_RESOLVED;
  if (is_good && strcmp(name, "event-twice") == 0) is_good = is_refused(rdma_ack_cm_event(event));
  return is_good && rdma_destroy_id(id) == 0;
}

/* The id cannot be destroyed any more. */
static int use_channel(const char* name) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  struct rdma_cm_id* id = channel == NULL ? NULL : make(channel);
  struct rdma_cm_event* event = NULL;
  if (id == NULL) return 0;
  rdma_destroy_event_channel(channel);
  if (strcmp(name, "channel-get") == 0) return is_refused(rdma_get_cm_event(channel, &event));
  return is_refused(rdma_destroy_id(id));
}

/* The open device of the id. */
static int use_completions(struct ibv_context* context, const char* name) {
  struct ibv_comp_channel* channel = ibv_create_comp_channel(context);
  struct ibv_cq* cq = channel == NULL ? NULL : ibv_create_cq(context, 1, NULL, channel, 0);
  void* user = NULL;
  /* A queue uses it. */
  const int is_busy = strcmp(name, "completions-busy") == 0;
  if (is_busy && (cq == NULL || ibv_destroy_comp_channel(channel) != EBUSY)) return 0;
  if (cq == NULL || ibv_destroy_cq(cq) != 0) return 0;
  if (ibv_destroy_comp_channel(channel) != 0) return 0;
  if (is_busy) return 1;
  if (strcmp(name, "completions-get") == 0) return is_refused(ibv_get_cq_event(channel, &cq, &user));
  if (strcmp(name, "completions-queue") == 0)
    return ibv_create_cq(context, 1, NULL, channel, 0) == NULL && errno == EINVAL;
  return strcmp(name, "completions-destroy") == 0 && ibv_destroy_comp_channel(channel) == EINVAL;
}

int main(int count, char** words) {
  const char* name = count == 2 ? words[1] : "";
  struct rdma_event_channel* channel = rdma_create_event_channel();
  struct rdma_cm_id* id = channel == NULL ? NULL : make(channel);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  /* This opens the device. */
  int is_good = id != NULL && rdma_bind_addr(id, (struct sockaddr*)&address) == 0;
  if (is_good && strncmp(name, "completions", 11) == 0) is_good = use_completions(id->verbs, name);
  if (is_good && strncmp(name, "ep-", 3) == 0) {
    rdma_destroy_ep(id);
  } else if (is_good) {
    is_good = rdma_destroy_id(id) == 0;
  }
  if (is_good && strcmp(name, "ep-listen") == 0) is_good = is_refused(rdma_listen(id, 1));
  if (is_good && strcmp(name, "ep-destroy") == 0) {
    errno = 0;
    rdma_destroy_ep(id);
    is_good = errno == EINVAL;
  }
  if (is_good && strcmp(name, "destroy") == 0) is_good = is_refused(rdma_destroy_id(id));
  if (is_good && strcmp(name, "listen") == 0) is_good = is_refused(rdma_listen(id, 1));
  if (is_good && strcmp(name, "disconnect") == 0) is_good = is_refused(rdma_disconnect(id));
  for (int i = 0; i < kMany && is_good && strcmp(name, "many") == 0; i++) {
    id = make(channel);
    is_good = id != NULL;
    if (is_good && i % 2 == 0) {
      rdma_destroy_ep(id);
    } else if (is_good) {
      is_good = rdma_destroy_id(id) == 0;
    }
  }
  if (is_good && strncmp(name, "event", 5) == 0) is_good = use_event(channel, name);
  if (is_good && strncmp(name, "channel", 7) == 0) is_good = use_channel(name);
  if (is_good && strncmp(name, "reject", 6) == 0) is_good = reject(channel, name[6] - '0');
  if (channel != NULL) rdma_destroy_event_channel(channel);
  puts(is_good ? "all went as planned" : "not as planned");
  return is_good ? 0 : 1;
}
