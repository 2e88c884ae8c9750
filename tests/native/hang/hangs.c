/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * hangs CASE [mended]: makes one mistake after which a thread waits in vain; the mended program ends with 0. The test
 * finds each mistake's line by the comment with its name.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#define CHECK(condition)                             \
  do {                                               \
    if (!(condition)) {                              \
      printf("line %d: %s\n", __LINE__, #condition); \
      exit(3);                                       \
    }                                                \
  } while (0)

static bool mended;
static uint8_t timeout = 14;
static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_comp_channel* channel;
static struct ibv_mr* mr;
static union ibv_gid gid;
static int gid_index;
static char memory[4096];

/* Two queue pairs that are connected, each with a completion queue on the channel. */
struct side {
  struct ibv_cq* cq;
  struct ibv_qp* qp;
};
static struct side sender, receiver;

static struct side make_side(struct ibv_srq* srq) {
  struct side side;
  CHECK(side.cq = ibv_create_cq(context, 16, NULL, channel, 0));
  struct ibv_qp_init_attr attr = {
      .send_cq = side.cq,
      .recv_cq = side.cq,
      .srq = srq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = 8, .max_recv_wr = srq ? 0 : 8, .max_send_sge = 1, .max_recv_sge = srq ? 0 : 1}};
  CHECK(side.qp = ibv_create_qp(pd, &attr));
  return side;
}

static void reset(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
  CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
}

static void initialize(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
  CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0);
}

static void connect_to(struct ibv_qp* qp, uint32_t peer) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = peer,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .sgid_index = gid_index, .hop_limit = 64}}};
  CHECK(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0);
  attr = (struct ibv_qp_attr){
      .qp_state = IBV_QPS_RTS, .timeout = timeout, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  CHECK(ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void connect_both(void) {
  initialize(sender.qp);
  initialize(receiver.qp);
  connect_to(sender.qp, receiver.qp->qp_num);
  connect_to(receiver.qp, sender.qp->qp_num);
}

static void open_device(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  CHECK(list && list[0]);
  CHECK(context = ibv_open_device(list[0]));
  for (gid_index = 0; gid_index < 8; gid_index++)
    if (ibv_query_gid(context, 1, gid_index, &gid) == 0 && gid.raw[10] == 0xff) break;
  CHECK(pd = ibv_alloc_pd(context));
  CHECK(channel = ibv_create_comp_channel(context));
  CHECK(mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
}

static void make_pair(void) {
  sender = make_side(NULL);
  receiver = make_side(NULL);
  connect_both();
}

static void post_write(int flags) {
  struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_RDMA_WRITE,
                           .send_flags = flags,
                           .wr.rdma = {(uintptr_t)memory + 1024, mr->rkey}},
                     *bad;
  CHECK(ibv_post_send(sender.qp, &wr, &bad) == 0);
}

static int try_message(int flags) {
  struct ibv_sge sge = {(uintptr_t)memory, 64, mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags}, *bad;
  return ibv_post_send(sender.qp, &wr, &bad);
}

static void post_message(int flags) {
  CHECK(try_message(flags) == 0);
}

static void post_receive(void) {
  struct ibv_sge sge = {(uintptr_t)memory + 2048, 64, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
  CHECK(ibv_post_recv(receiver.qp, &wr, &bad) == 0);
}

static void arm(struct ibv_cq* cq, int solicited_only) {
  CHECK(ibv_req_notify_cq(cq, solicited_only) == 0);
}

static int poll_one(struct ibv_cq* cq) {
  struct ibv_wc wc;
  const int polled = ibv_poll_cq(cq, 1, &wc);
  CHECK(polled >= 0 && (polled == 0 || wc.status == IBV_WC_SUCCESS));
  return polled;
}

static void poll_until_there(struct ibv_cq* cq) {
  while (poll_one(cq) == 0) continue;
}

static struct ibv_cq* get_event(void) {
  struct ibv_cq* cq;
  void* user;
  CHECK(ibv_get_cq_event(channel, &cq, &user) == 0);
  return cq;
}

static void wait_for_event(void) {
  ibv_ack_cq_events(get_event(), 1);
}

static void unarmed(void) {
  make_pair();
  if (mended) arm(sender.cq, 0);
  post_write(IBV_SEND_SIGNALED);
  wait_for_event(); /* unarmed */
}

static void without_channel(void) {
  make_pair();
  struct ibv_comp_channel* const own = channel;
  if (!mended) channel = NULL;
  sender = make_side(NULL); /* without-channel */
  receiver = make_side(NULL);
  connect_both();
  channel = mended ? own : ibv_create_comp_channel(context);
  arm(sender.cq, 0);
  post_write(IBV_SEND_SIGNALED);
  wait_for_event();
}

static void* wait_for_own_event(void* other) {
  struct ibv_cq* cq;
  void* user;
  ibv_get_cq_event(other, &cq, &user); /* idle-channel */
  return NULL;
}

/* A thread of a server waits for clients, whose completion queues another one will watch: nothing is wrong. */
static void idle_channel(void) {
  make_pair();
  if (mended) return;
  struct ibv_comp_channel* const other = ibv_create_comp_channel(context);
  pthread_t worker;
  CHECK(other && pthread_create(&worker, NULL, wait_for_own_event, other) == 0);
  pthread_join(worker, NULL);
}

/* constructor.c calls it, so this thread has the lock of the dynamic linker. */
__attribute__((visibility("default"))) void wait_in_constructor(void);
void wait_in_constructor(void) {
  wait_for_event(); /* constructor */
}

static void constructor(void) {
  make_pair();
  if (mended) arm(sender.cq, 0);
  post_write(IBV_SEND_SIGNALED);
  CHECK(dlopen(getenv("HANGS_LIBRARY"), RTLD_NOW));
}

static void lost(void) {
  make_pair();
  post_write(IBV_SEND_SIGNALED);
  usleep(100000);
  arm(sender.cq, 0); /* lost */
  if (mended && poll_one(sender.cq) == 1) return;
  printf("process %d waits\n", (int)getpid());
  fflush(stdout);
  wait_for_event();
}

/* The same with poll(), epoll and select(). */
static void lost_to_poll(void) {
  make_pair();
  post_write(IBV_SEND_SIGNALED);
  usleep(100000);
  arm(sender.cq, 0);
  if (mended && poll_one(sender.cq) == 1) return;
  struct pollfd waiting = {.fd = channel->fd, .events = POLLIN};
  CHECK(poll(&waiting, 1, -1) == 1); /* lost-to-poll */
}

static void lost_to_epoll(void) {
  make_pair();
  const int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &event) == 0);
  post_write(IBV_SEND_SIGNALED);
  usleep(100000);
  arm(sender.cq, 0);
  if (mended && poll_one(sender.cq) == 1) return;
  CHECK(epoll_wait(epoll, &event, 1, -1) == 1); /* lost-to-epoll */
}

/* Reads one event each time, although two have come. */
static void edge_triggered(void) {
  make_pair();
  const int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN | EPOLLET};
  CHECK(fcntl(channel->fd, F_SETFL, O_NONBLOCK) == 0);
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, channel->fd, &event) == 0);
  arm(sender.cq, 0);
  arm(receiver.cq, 0);
  post_receive();
  post_message(IBV_SEND_SIGNALED);
  usleep(100000);
  for (int got = 0; got < 2;) {
    CHECK(epoll_wait(epoll, &event, 1, -1) == 1); /* edge-triggered */
    struct ibv_cq* cq;
    void* user;
    do {
      if (ibv_get_cq_event(channel, &cq, &user) != 0) break;
      ibv_ack_cq_events(cq, 1);
      got++;
    } while (mended);
  }
}

static void lost_to_select(void) {
  make_pair();
  post_write(IBV_SEND_SIGNALED);
  usleep(100000);
  arm(sender.cq, 0);
  if (mended && poll_one(sender.cq) == 1) return;
  fd_set set;
  FD_ZERO(&set);
  FD_SET(channel->fd, &set);
  CHECK(select(channel->fd + 1, &set, NULL, NULL, NULL) == 1); /* lost-to-select */
}

/* A thread of the program, with another name, and one that only waits for it. */
static void* wait_in_thread(void* unused) {
  (void)unused;
  wait_for_event(); /* thread */
  return NULL;
}

static void thread(void) {
  make_pair();
  post_write(IBV_SEND_SIGNALED);
  usleep(100000);
  if (mended) poll_until_there(sender.cq);
  arm(sender.cq, 0);
  if (mended) post_write(IBV_SEND_SIGNALED);
  pthread_t worker;
  CHECK(pthread_create(&worker, NULL, wait_in_thread, NULL) == 0);
  pthread_setname_np(worker, "worker");
  pthread_join(worker, NULL);
}

/* Takes one completion for each event, although one event tells of several completions. */
static void one_for_each_event(void) {
  make_pair();
  arm(sender.cq, 0);
  for (int i = 0; i < 4; i++) post_write(IBV_SEND_SIGNALED);
  usleep(100000);
  for (int taken = 0; taken < 4;) {
    wait_for_event();
    arm(sender.cq, 0); /* one-for-each-event */
    taken += poll_one(sender.cq);
    while (mended && poll_one(sender.cq) == 1) taken++;
  }
}

static void not_armed_again(void) {
  make_pair();
  arm(sender.cq, 0);
  post_write(IBV_SEND_SIGNALED);
  wait_for_event(); /* not-armed-again */
  if (mended) arm(sender.cq, 0);
  poll_until_there(sender.cq);
  post_write(IBV_SEND_SIGNALED);
  wait_for_event();
}

static void solicited(void) {
  make_pair();
  post_receive();
  arm(receiver.cq, 1); /* solicited */
  post_message(mended ? IBV_SEND_SIGNALED | IBV_SEND_SOLICITED : IBV_SEND_SIGNALED);
  wait_for_event();
}

static void unsignaled(void) {
  make_pair();
  post_write(mended ? IBV_SEND_SIGNALED : 0); /* unsignaled */
  poll_until_there(sender.cq);
}

/* The peer has no receive, so the request waits until the change to RESET drops it. */
static void lost_sends(void) {
  make_pair();
  if (mended) post_receive();
  post_message(IBV_SEND_SIGNALED);
  usleep(100000);
  if (!mended) {
    reset(sender.qp); /* lost-sends */
    initialize(sender.qp);
  }
  poll_until_there(sender.cq);
}

/* The full queue refuses the last request, so the first one is still the oldest of those that are lost. */
static void lost_from_full_queue(void) {
  make_pair();
  for (int i = 0; mended && i < 8; i++) post_receive();
  post_message(IBV_SEND_SIGNALED); /* lost-from-full-queue */
  if (mended) {
    post_message(IBV_SEND_SIGNALED);
  } else {
    int error;
    while ((error = try_message(IBV_SEND_SIGNALED)) == 0) continue;
    CHECK(error == ENOMEM);
    reset(sender.qp);
    initialize(sender.qp);
  }
  poll_until_there(sender.cq);
}

static void lost_receives(void) {
  make_pair();
  post_receive();
  reset(sender.qp);
  reset(receiver.qp); /* lost-receives */
  connect_both();
  if (mended) post_receive();
  post_message(IBV_SEND_SIGNALED);
  poll_until_there(sender.cq);
}

/* The peer tries again and again: rnr_retry is 7. */
static void not_ready(void) {
  make_pair(); /* not-ready */
  if (mended) post_receive();
  post_message(IBV_SEND_SIGNALED);
  poll_until_there(sender.cq);
}

/* An event of the limit, which comes once for each ibv_modify_srq(). */
static void limit(void) {
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(pd, &init);
  CHECK(srq);
  sender = make_side(NULL);
  receiver = make_side(srq);
  connect_both();
  struct ibv_srq_attr limit_of_two = {.srq_limit = 2};
  for (int i = 0; i < 2; i++) {
    struct ibv_sge sge = {(uintptr_t)memory + 2048, 64, mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0);
    if (i == 0) CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0);
    if (i == 0 || mended) CHECK(ibv_modify_srq(srq, &limit_of_two, IBV_SRQ_LIMIT) == 0); /* limit */
    post_message(IBV_SEND_SIGNALED);
    struct ibv_async_event event;
    CHECK(ibv_get_async_event(context, &event) == 0);
    CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED || event.event_type == IBV_EVENT_COMM_EST);
    ibv_ack_async_event(&event);
  }
}

static void unacknowledged(void) {
  make_pair();
  arm(sender.cq, 0);
  post_write(IBV_SEND_SIGNALED);
  struct ibv_cq* cq = get_event(); /* unacknowledged */
  if (mended) ibv_ack_cq_events(cq, 1);
  CHECK(ibv_destroy_qp(sender.qp) == 0);
  CHECK(ibv_destroy_cq(sender.cq) == 0);
}

/* Two completions and one event of them. */
static void acknowledged_twice(void) {
  make_pair();
  arm(sender.cq, 0);
  post_write(IBV_SEND_SIGNALED);
  post_write(IBV_SEND_SIGNALED);
  struct ibv_cq* cq = get_event(); /* acknowledged-twice */
  poll_until_there(cq);
  poll_until_there(cq);
  ibv_ack_cq_events(cq, mended ? 1 : 2);
  CHECK(ibv_destroy_qp(sender.qp) == 0);
  CHECK(ibv_destroy_cq(sender.cq) == 0);
}

static void unacknowledged_id(void) {
  struct rdma_event_channel* events = rdma_create_event_channel();
  struct rdma_cm_id* id;
  struct rdma_cm_event* event;
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(7471), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  CHECK(events && rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr*)&address, 2000) == 0);
  CHECK(rdma_get_cm_event(events, &event) == 0); /* unacknowledged-id */
  if (mended) rdma_ack_cm_event(event);
  CHECK(rdma_destroy_id(id) == 0);
}

static struct rdma_event_channel* cm_events;

static struct rdma_cm_id* get_cm_event(enum rdma_cm_event_type type) {
  struct rdma_cm_event* event;
  CHECK(rdma_get_cm_event(cm_events, &event) == 0 && event->event == type);
  struct rdma_cm_id* id = event->id;
  CHECK(rdma_ack_cm_event(event) == 0);
  return id;
}

/* A client and a server in one program, whose queue pairs are their own. Returns the server's id. */
static struct rdma_cm_id* connect_to_self(struct rdma_cm_id** client, uint16_t port) {
  struct rdma_cm_id* listener;
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  make_pair();
  CHECK((cm_events = rdma_create_event_channel()) && rdma_create_id(cm_events, &listener, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_bind_addr(listener, (struct sockaddr*)&address) == 0 && rdma_listen(listener, 1) == 0);
  CHECK(rdma_create_id(cm_events, client, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_resolve_addr(*client, NULL, (struct sockaddr*)&address, 2000) == 0);
  get_cm_event(RDMA_CM_EVENT_ADDR_RESOLVED);
  CHECK(rdma_resolve_route(*client, 2000) == 0);
  get_cm_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
  struct rdma_conn_param parameters = {.qp_num = sender.qp->qp_num};
  CHECK(rdma_connect(*client, &parameters) == 0);
  return get_cm_event(RDMA_CM_EVENT_CONNECT_REQUEST); /* unanswered */
}

static void accept_request(struct rdma_cm_id* id) {
  struct rdma_conn_param parameters = {.qp_num = receiver.qp->qp_num};
  CHECK(rdma_accept(id, &parameters) == 0);
}

static void* accept_in_thread(void* id) {
  accept_request(id);
  return NULL;
}

/* The server of the mended program answers in another thread. */
static void unanswered(void) {
  struct rdma_cm_id* client;
  struct rdma_cm_id* const server = connect_to_self(&client, 7474);
  pthread_t worker = 0;
  if (mended) CHECK(pthread_create(&worker, NULL, accept_in_thread, server) == 0);
  get_cm_event(RDMA_CM_EVENT_CONNECT_RESPONSE);
  if (mended) pthread_join(worker, NULL);
}

static void rejected(void) {
  struct rdma_cm_id* client;
  struct rdma_cm_id* const server = connect_to_self(&client, 7475);
  CHECK(rdma_reject(server, NULL, 0) == 0);
  get_cm_event(RDMA_CM_EVENT_REJECTED);
  if (!mended) get_cm_event(RDMA_CM_EVENT_DISCONNECTED); /* rejected */
}

static void unestablished(void) {
  struct rdma_cm_id* client;
  accept_request(connect_to_self(&client, 7476));
  get_cm_event(RDMA_CM_EVENT_CONNECT_RESPONSE); /* unestablished */
  if (mended) CHECK(rdma_establish(client) == 0);
  get_cm_event(RDMA_CM_EVENT_ESTABLISHED);
}

/* Both ends are connected, and nobody ends the connection: nothing is wrong. */
static void established(void) {
  struct rdma_cm_id* client;
  accept_request(connect_to_self(&client, 7477));
  get_cm_event(RDMA_CM_EVENT_CONNECT_RESPONSE);
  CHECK(rdma_establish(client) == 0);
  get_cm_event(RDMA_CM_EVENT_ESTABLISHED);
  if (mended) CHECK(rdma_disconnect(client) == 0);
  get_cm_event(RDMA_CM_EVENT_DISCONNECTED); /* established */
}

/* A server without clients: nothing is wrong. */
static void idle(void) {
  struct rdma_event_channel* events = rdma_create_event_channel();
  struct rdma_cm_id* id;
  struct rdma_cm_event* event;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7472)};
  CHECK(events && rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_bind_addr(id, (struct sockaddr*)&address) == 0 && rdma_listen(id, 1) == 0);
  make_pair();
  if (!mended) CHECK(rdma_get_cm_event(events, &event) == 0); /* idle */
}

/* The same before the program has a device: it listens at all addresses. */
static void listening(void) {
  struct rdma_event_channel* events = rdma_create_event_channel();
  struct rdma_cm_id* id;
  struct rdma_cm_event* event;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7473)};
  CHECK(events && rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0);
  CHECK(rdma_bind_addr(id, (struct sockaddr*)&address) == 0 && rdma_listen(id, 1) == 0 && id->verbs == NULL);
  if (!mended) CHECK(rdma_get_cm_event(events, &event) == 0); /* listening */
}

/* A client that waits without a call of rdma_resolve_addr(). */
static void unresolved(void) {
  struct rdma_event_channel* events = rdma_create_event_channel();
  struct rdma_cm_id* id;
  struct rdma_cm_event* event;
  CHECK(events && rdma_create_id(events, &id, NULL, RDMA_PS_TCP) == 0 && id->verbs == NULL);
  if (!mended) CHECK(rdma_get_cm_event(events, &event) == 0); /* unresolved */
}

/* The same after the end of a device that still has queues. Their memory, and the device's, is used again. */
static void closed(void) {
  struct rdma_event_channel* events = rdma_create_event_channel();
  struct rdma_cm_event* event;
  CHECK(events);
  make_pair();
  CHECK(ibv_close_device(context) == 0);
  for (size_t size = 16; size < 16384; size += 16) {
    void* block = malloc(size);
    CHECK(block);
    memset(block, 0xff, size);
  }
  if (!mended) CHECK(rdma_get_cm_event(events, &event) == 0); /* closed */
}

/* A peer that sends nothing: nothing is wrong here. */
static void silent_peer(void) {
  make_pair();
  post_receive();
  arm(receiver.cq, 0);
  if (mended) post_message(IBV_SEND_SIGNALED);
  wait_for_event(); /* silent-peer */
}

/* Polls two queues in turn, one of which gets nothing on purpose: nothing is wrong here. */
static void polls_both(void) {
  make_pair();
  post_receive();
  post_write(0);
  if (mended) post_message(0);
  while (poll_one(sender.cq) == 0 && poll_one(receiver.cq) == 0) continue; /* polls-both */
}

/* Polls, arms and sleeps. It loses the event of a completion that comes between the first two. */
static void* post_later(void* unused) {
  (void)unused;
  usleep(20000);
  post_write(IBV_SEND_SIGNALED);
  return NULL;
}

static void race(void) {
  make_pair();
  pthread_t poster;
  CHECK(pthread_create(&poster, NULL, post_later, NULL) == 0);
  if (poll_one(sender.cq) == 0) {
    arm(sender.cq, 0); /* race */
    if (!mended || poll_one(sender.cq) == 0) wait_for_event();
  }
  pthread_join(poster, NULL);
}

/* Polls for a message in the queue of the send requests. */
static void wrong_queue(void) {
  struct ibv_cq* const for_messages = ibv_create_cq(context, 16, NULL, NULL, 0);
  sender = make_side(NULL);
  receiver = make_side(NULL);
  CHECK(ibv_destroy_qp(receiver.qp) == 0);
  struct ibv_qp_init_attr attr = {.send_cq = receiver.cq,
                                  .recv_cq = for_messages,
                                  .qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
  CHECK(receiver.qp = ibv_create_qp(pd, &attr));
  connect_both();
  post_receive();
  post_message(IBV_SEND_SIGNALED);
  poll_until_there(sender.cq);
  poll_until_there(mended ? for_messages : receiver.cq); /* wrong-queue */
}

/* The peer is in IBV_QPS_INIT, and the timeout of 0 lets the request wait for ever. */
static void unready_peer(void) {
  sender = make_side(NULL);
  receiver = make_side(NULL);
  initialize(sender.qp);
  initialize(receiver.qp);
  timeout = 0;
  connect_to(sender.qp, receiver.qp->qp_num);
  if (mended) connect_to(receiver.qp, sender.qp->qp_num);
  post_write(IBV_SEND_SIGNALED);
  poll_until_there(sender.cq); /* unready-peer */
}

/* A list that leads back to its only request. */
static void circle(void) {
  make_pair();
  struct ibv_recv_wr receive = {.next = mended ? NULL : &receive}, *bad_receive;
  CHECK(ibv_post_recv(receiver.qp, &receive, &bad_receive) == (mended ? 0 : EINVAL));
  struct ibv_send_wr send = {.next = mended ? NULL : &send, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad_send;
  CHECK(ibv_post_send(sender.qp, &send, &bad_send) == (mended ? 0 : EINVAL));
  if (mended) poll_until_there(sender.cq);
}

/* Computes for longer than the limit of the test. */
static void busy(void) {
  make_pair();
  for (volatile long i = 0; i < (mended ? 2000000000L : 4000000000L); i++) continue;
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"unarmed", unarmed},
    {"without-channel", without_channel},
    {"idle-channel", idle_channel},
    {"constructor", constructor},
    {"lost", lost},
    {"lost-to-poll", lost_to_poll},
    {"lost-to-epoll", lost_to_epoll},
    {"lost-to-select", lost_to_select},
    {"edge-triggered", edge_triggered},
    {"thread", thread},
    {"one-for-each-event", one_for_each_event},
    {"not-armed-again", not_armed_again},
    {"solicited", solicited},
    {"unsignaled", unsignaled},
    {"lost-sends", lost_sends},
    {"lost-from-full-queue", lost_from_full_queue},
    {"lost-receives", lost_receives},
    {"not-ready", not_ready},
    {"limit", limit},
    {"unacknowledged", unacknowledged},
    {"acknowledged-twice", acknowledged_twice},
    {"unacknowledged-id", unacknowledged_id},
    {"unanswered", unanswered},
    {"rejected", rejected},
    {"unestablished", unestablished},
    {"established", established},
    {"idle", idle},
    {"listening", listening},
    {"unresolved", unresolved},
    {"closed", closed},
    {"silent-peer", silent_peer},
    {"polls-both", polls_both},
    {"race", race},
    {"wrong-queue", wrong_queue},
    {"unready-peer", unready_peer},
    {"circle", circle},
    {"busy", busy},
};

int main(int argc, char** argv) {
  mended = argc > 2 && strcmp(argv[2], "mended") == 0;
  for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++) {
    if (strcmp(argv[1], cases[i].name) != 0) continue;
    if (cases[i].run != listening && cases[i].run != unresolved) open_device();
    cases[i].run();
    return 0;
  }
  return 2;
}
