/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * raced CASE: a program for ThreadSanitizer. CASE names what it uses too early: "sent", the source of a Write before
 * its completion; "fetched", the target of a Read; "received" and "shared", the buffer of a receive (of a shared
 * receive queue) after the completion of the Send alone; "written", under dapple-run --check=strict, what a peer has
 * written before any message from it; "counted", under --check, the word of a fetch and add; "none" for a correct
 * program with several threads.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/native/sanitizers/pair.h"

enum { kThreads = 3, kRounds = 50, kUnsignalled = 3 };

struct side {
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct buffer buffer;
};

struct connection {
  struct side front, back;
  struct ibv_srq* srq;
};

static struct side make_side(bool with_channel, struct ibv_srq* shared) {
  struct side made = {.channel = with_channel ? ibv_create_comp_channel(device) : NULL, .buffer = make_buffer()};
  made.cq = ibv_create_cq(device, 16, NULL, made.channel, 0);
  check(made.cq != NULL && (made.channel != NULL || !with_channel), "ibv_create_cq");
  cq = made.cq;
  srq = shared;
  made.qp = make_queue_pair();
  return made;
}

static struct connection make_connection(bool with_channel, bool with_shared) {
  struct connection made = {.srq = NULL};
  struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
  if (with_shared) made.srq = ibv_create_srq(pd, &init);
  check(made.srq != NULL || !with_shared, "ibv_create_srq");
  made.front = make_side(false, NULL);
  made.back = make_side(with_channel, made.srq);
  connect_pair(made.front.qp, made.back.qp, kTimeout);
  return made;
}

static void post_receive_into(struct connection* connection, const struct buffer* buffer) {
  struct ibv_sge segment = segment_of(buffer);
  struct ibv_recv_wr receive = {.sg_list = &segment, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check((connection->srq != NULL ? ibv_post_srq_recv(connection->srq, &receive, &bad)
                                 : ibv_post_recv(connection->back.qp, &receive, &bad)) == 0,
        "a receive");
}

static void post_receive(struct connection* connection) {
  post_receive_into(connection, &connection->back.buffer);
}

static void post_with(struct connection* connection, enum ibv_wr_opcode opcode, unsigned flags) {
  struct ibv_sge segment = segment_of(&connection->front.buffer);
  struct ibv_send_wr request = {.sg_list = &segment, .num_sge = 1, .opcode = opcode};
  request.send_flags = flags;
  request.wr.rdma.remote_addr = (uintptr_t)connection->back.buffer.bytes;
  request.wr.rdma.rkey = connection->back.buffer.mr->rkey;
  struct ibv_send_wr* bad;
  check(ibv_post_send(connection->front.qp, &request, &bad) == 0, "ibv_post_send");
}

static void post(struct connection* connection, enum ibv_wr_opcode opcode, bool signalled) {
  post_with(connection, opcode, signalled ? IBV_SEND_SIGNALED : 0);
}

static void wait_for(struct side* side) {
  struct ibv_wc completion;
  if (side->channel != NULL) {
    struct ibv_cq* ready;
    void* context;
    check(ibv_req_notify_cq(side->cq, 0) == 0, "ibv_req_notify_cq");
    if (ibv_poll_cq(side->cq, 1, &completion) == 1) {
      check(completion.status == IBV_WC_SUCCESS, "a request");
      return;
    }
    check(ibv_get_cq_event(side->channel, &ready, &context) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(ready, 1);
  }
  while (ibv_poll_cq(side->cq, 1, &completion) == 0) {
  }
  check(completion.status == IBV_WC_SUCCESS, "a request");
}

static uint64_t* word_of(const struct connection* connection) {
  return (uint64_t*)(void*)connection->back.buffer.bytes;
}

static void post_fetch_and_add(struct connection* connection, bool signalled) {
  struct ibv_sge segment = segment_of(&connection->front.buffer);
  segment.length = sizeof(uint64_t);
  struct ibv_send_wr request = {.sg_list = &segment, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};
  request.send_flags = signalled ? IBV_SEND_SIGNALED : 0;
  request.wr.atomic.remote_addr = (uintptr_t)word_of(connection);
  request.wr.atomic.rkey = connection->back.buffer.mr->rkey;
  request.wr.atomic.compare_add = 1;
  struct ibv_send_wr* bad;
  check(ibv_post_send(connection->front.qp, &request, &bad) == 0, "ibv_post_send");
}

/* A word that the device and the program change: both by atomics, or the program after it knows that the device is
 * done. */
static void count_together(struct connection* connection) {
  struct buffer received = make_buffer();
  uint64_t* word = word_of(connection);
  memset(connection->front.buffer.bytes, 0, kSize);
  post(connection, IBV_WR_RDMA_WRITE, false);
  post_fetch_and_add(connection, true);
  wait_for(&connection->front);
  for (int i = 0; i < kRounds; ++i) {
    post_fetch_and_add(connection, true);
    __atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
    wait_for(&connection->front);
    *word += 1;
  }
  check(*word == 3 * kRounds + 1, "what was counted");
  /* By a message. */
  post_receive_into(connection, &received);
  post_fetch_and_add(connection, false);
  post_with(connection, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  wait_for(&connection->back);
  *word = 0;
  wait_for(&connection->front);
  /* By the new value. */
  post_fetch_and_add(connection, true);
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) {
  }
  *word = 0;
  wait_for(&connection->front);
  check(ibv_dereg_mr(received.mr) == 0, "ibv_dereg_mr");
  free(received.bytes);
}

static void one_round(struct connection* connection, int number) {
  memset(connection->back.buffer.bytes, 0, kSize);
  post_receive(connection);
  memset(connection->front.buffer.bytes, number, kSize);
  for (int i = 0; i < kUnsignalled; ++i) post(connection, IBV_WR_RDMA_READ, false);
  post(connection, IBV_WR_RDMA_READ, true);
  wait_for(&connection->front);
  memset(connection->front.buffer.bytes, number, kSize);
  post(connection, IBV_WR_SEND, true);
  wait_for(&connection->back);
  check(connection->back.buffer.bytes[0] == (char)number, "what was received");
  wait_for(&connection->front);
  connection->front.buffer.bytes[0] = 0;
}

/* What a Read fetches is sent on at once: the fence makes the device wait, and the program does not look. */
static void send_fetched(struct connection* connection, int number) {
  struct buffer received = make_buffer();
  memset(connection->back.buffer.bytes, number, kSize);
  post_receive_into(connection, &received);
  post(connection, IBV_WR_RDMA_READ, false);
  post_with(connection, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  wait_for(&connection->front);
  wait_for(&connection->back);
  check(received.bytes[0] == (char)number, "what was sent on");
  check(ibv_dereg_mr(received.mr) == 0, "ibv_dereg_mr");
  free(received.bytes);
}

static pthread_mutex_t shared_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct connection shared_connection;

static void* run_thread(void* unused) {
  (void)unused;
  pthread_mutex_lock(&shared_mutex);
  struct connection own = make_connection(false, false);
  struct connection with_channel = make_connection(true, true);
  pthread_mutex_unlock(&shared_mutex);
  for (int i = 0; i < kRounds; ++i) {
    one_round(&own, i);
    send_fetched(&own, i);
    one_round(&with_channel, i);
    pthread_mutex_lock(&shared_mutex);
    one_round(&shared_connection, i);
    pthread_mutex_unlock(&shared_mutex);
  }
  post_receive(&own);
  check(ibv_destroy_qp(own.front.qp) == 0 && ibv_destroy_qp(own.back.qp) == 0, "ibv_destroy_qp");
  own.back.buffer.bytes[0] = 1;
  post_receive(&with_channel);
  check(ibv_dereg_mr(with_channel.back.buffer.mr) == 0, "ibv_dereg_mr");
  free(with_channel.back.buffer.bytes);
  return NULL;
}

/* Only the completions order this thread's accesses behind those of the thread that posts. */
static void* poll_for_another(void* argument) {
  struct connection* connection = argument;
  wait_for(&connection->front);
  connection->front.buffer.bytes[0] = 2;
  wait_for(&connection->back);
  check(connection->back.buffer.bytes[0] == 1, "what another thread let receive");
  connection->back.buffer.bytes[0] = 3;
  return NULL;
}

static atomic_bool channel_is_made;

/* The folder gets a number that the device has had for a moment. Nothing orders this thread behind the other one. */
static void* list_a_folder(void* unused) {
  (void)unused;
  while (!atomic_load_explicit(&channel_is_made, memory_order_relaxed)) sched_yield();
  DIR* folder = opendir("/");
  check(folder != NULL && closedir(folder) == 0, "a folder");
  return NULL;
}

static void make_channel_beside(void) {
  pthread_t lister;
  check(pthread_create(&lister, NULL, list_a_folder, NULL) == 0, "pthread_create");
  struct ibv_comp_channel* channel = ibv_create_comp_channel(device);
  check(channel != NULL, "ibv_create_comp_channel");
  atomic_store_explicit(&channel_is_made, true, memory_order_relaxed);
  pthread_join(lister, NULL);
  check(ibv_destroy_comp_channel(channel) == 0, "ibv_destroy_comp_channel");
}

static void run_correctly(void) {
  make_channel_beside();
  struct connection polled = make_connection(false, false);
  pthread_t poller;
  check(pthread_create(&poller, NULL, poll_for_another, &polled) == 0, "pthread_create");
  memset(polled.front.buffer.bytes, 1, kSize);
  post_receive(&polled);
  post(&polled, IBV_WR_SEND, true);
  pthread_join(poller, NULL);
  count_together(&polled);
  shared_connection = make_connection(false, true);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) check(pthread_create(&threads[i], NULL, run_thread, NULL) == 0, "pthread_create");
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

static void run_with_bug(const char* which) {
  struct connection connection = make_connection(false, strcmp(which, "shared") == 0);
  memset(connection.front.buffer.bytes, 1, kSize);
  memset(connection.back.buffer.bytes, 1, kSize);
  const bool writes = strcmp(which, "written") == 0;
  if (strcmp(which, "counted") == 0) {
    post_fetch_and_add(&connection, true);
    *word_of(&connection) += 1;
    wait_for(&connection.front);
    return;
  }
  if (!writes) post_receive(&connection);
  if (strcmp(which, "sent") == 0) {
    post(&connection, IBV_WR_RDMA_WRITE, true);
    connection.front.buffer.bytes[5] = 2;
  } else if (strcmp(which, "fetched") == 0) {
    post(&connection, IBV_WR_RDMA_READ, true);
    check(connection.front.buffer.bytes[5] == 1, "what is read");
  } else {
    post(&connection, writes ? IBV_WR_RDMA_WRITE : IBV_WR_SEND, true);
  }
  wait_for(&connection.front);
  if (writes) check(connection.back.buffer.bytes[5] == 1, "what is written");
  if (strcmp(which, "received") != 0 && strcmp(which, "shared") != 0) return;
  check(connection.back.buffer.bytes[5] == 1, "what is received");
  wait_for(&connection.back);
}

int main(int count, char** arguments) {
  open_with_queue();
  if (count == 2 && strcmp(arguments[1], "none") != 0) {
    run_with_bug(arguments[1]);
  } else {
    run_correctly();
  }
  puts("all went well");
  return 0;
}
