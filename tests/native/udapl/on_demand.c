/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors
 *
 * on-demand IA [RANKS [fixed]]: processes that connect to each other when they first need it, as old MPIs do. All
 * endpoints of a process report their transfers to one EVD, which is as long as needed and no longer, and their
 * connections to another. A thread serves connection requests while the main thread writes into the others' windows and
 * ends each round with a fence: a message to each peer, which must not overtake the RDMA Writes before it. Two
 * processes that connect to each other at the same time settle it by their ranks: the lower one accepts, after its own
 * request was rejected and its endpoint reset. Receives are posted when the connection is there, so a message may find
 * none yet.
 *
 * Exits with 0 if every transfer succeeded and every window had the right bytes after each fence.
 */
#include <arpa/inet.h>
#include <dat2/udat.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  kMaxRanks = 8,
  kRounds = 60,
  kRoundsOfAPeer = 8, /* after so many rounds, each process talks to one peer more */
  kWrites = 5,        /* of a round, to each peer */
  kWriteBytes = 24 * 1024,
  kReceives = 4, /* of an endpoint */
  kPatience_s = 100,
  kRequests = 2 * (kWrites + 1),  /* of an endpoint */
  kEvents = kReceives + kRequests /* the most completions of an endpoint */
};

/* The part that the ranks share, in place of an MPI's process manager. */
struct shared {
  atomic_int arrived[8];
  struct {
    struct sockaddr_storage address;
    DAT_CONN_QUAL port;
    DAT_RMR_TRIPLET window;
  } ranks[kMaxRanks];
};

/* Two halves for alternate rounds: a peer may be one round ahead. */
struct window {
  unsigned char bytes[2][kMaxRanks][kWrites][kWriteBytes];
};

struct message {
  uint32_t round;
  uint32_t rank;
};

enum state { kUnconnected, kConnecting, kAwaiting, kConnected };

struct peer {
  enum state state;
  _Atomic(DAT_EP_HANDLE) ep;
  DAT_CR_HANDLE request; /* arrived while our own was on its way */
  uint32_t fences;       /* the number of rounds whose message has come */
  int outstanding;       /* requests without a completion yet */
  bool disconnected;
};

static struct shared* shared;
static struct window* window;
static struct message receives[kMaxRanks][kReceives], messages[kMaxRanks][2];
static unsigned char (*source)[kWrites][kWriteBytes]; /* for each half */
static int me, ranks;
static bool grows;
static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE transfers, requests, connections, async = DAT_HANDLE_NULL;
static DAT_PSP_HANDLE psp;
static DAT_LMR_CONTEXT window_context, receives_context, messages_context, source_context;
static DAT_LMR_HANDLE lmrs[4];
static int num_lmrs, num_endpoints;
static struct peer peers[kMaxRanks];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards peers' states, endpoints and requests */
static atomic_bool over;
static volatile uint32_t present_round;

#define DIE(...)                                         \
  do {                                                   \
    fprintf(stderr, "rank %d, line %d: ", me, __LINE__); \
    fprintf(stderr, __VA_ARGS__);                        \
    fputc('\n', stderr);                                 \
    _exit(1);                                            \
  } while (0)
#define OK(call)                                                          \
  do {                                                                    \
    const DAT_RETURN status_ = (call);                                    \
    if (status_ != DAT_SUCCESS) DIE("%s: %#x", #call, (unsigned)status_); \
  } while (0)

static void barrier(int number) {
  atomic_fetch_add(&shared->arrived[number], 1);
  while (atomic_load(&shared->arrived[number]) < ranks) usleep(1000);
}

static void* map(size_t bytes) {
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) DIE("no memory");
  return memory;
}

static DAT_LMR_CONTEXT register_memory(void* memory, size_t bytes, DAT_RMR_TRIPLET* remote) {
  DAT_REGION_DESCRIPTION region = {.for_va = memory};
  DAT_LMR_CONTEXT context;
  DAT_RMR_CONTEXT rmr_context;
  OK(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, bytes, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
                    &lmrs[num_lmrs++], &context, &rmr_context, NULL, NULL));
  if (remote) {
    memset(remote, 0, sizeof *remote);
    remote->rmr_context = rmr_context;
    remote->virtual_address = (DAT_VADDR)(uintptr_t)memory;
    remote->segment_length = (DAT_SEG_LENGTH)bytes;
  }
  return context;
}

static DAT_LMR_TRIPLET segment(DAT_LMR_CONTEXT context, const void* memory, size_t bytes) {
  DAT_LMR_TRIPLET triplet;
  memset(&triplet, 0, sizeof triplet);
  triplet.lmr_context = context;
  triplet.virtual_address = (DAT_VADDR)(uintptr_t)memory;
  triplet.segment_length = (DAT_SEG_LENGTH)bytes;
  return triplet;
}

/* ---- Cookies: the peer, and what it was ---- */

enum { kReceive = 0, kFence = 1, kWrite = 2 };

static DAT_DTO_COOKIE cookie_of(int peer, int kind, int number) {
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = (DAT_UINT64)(peer << 16 | kind << 8 | number);
  return cookie;
}

static void post_receive(int peer, int number) {
  DAT_LMR_TRIPLET into = segment(receives_context, &receives[peer][number], sizeof(struct message));
  OK(dat_ep_post_recv(peers[peer].ep, 1, &into, cookie_of(peer, kReceive, number), DAT_COMPLETION_DEFAULT_FLAG));
}

/* ---- Connections; the caller holds the lock ---- */

static void make_endpoint(int peer) {
  DAT_EP_ATTR attr;
  memset(&attr, 0, sizeof attr);
  attr.service_type = DAT_SERVICE_TYPE_RC;
  attr.max_message_size = 4096;
  attr.max_rdma_size = kWriteBytes;
  attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
  attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
  attr.max_recv_dtos = kReceives;
  attr.max_request_dtos = kRequests;
  attr.max_recv_iov = attr.max_request_iov = attr.max_rdma_write_iov = 1;
  /* The EVD grows with the endpoints, while the others use it. */
  ++num_endpoints;
  if (grows) OK(dat_evd_resize(transfers, num_endpoints * kEvents));
  DAT_EP_HANDLE made;
  OK(dat_ep_create(ia, pz, transfers, transfers, connections, &attr, &made));
  peers[peer].ep = made;
}

static void accept_request(int peer) {
  const DAT_CR_HANDLE request = peers[peer].request;
  peers[peer].request = DAT_HANDLE_NULL;
  OK(dat_cr_accept(request, peers[peer].ep, sizeof me, &me));
}

static int peer_of(DAT_EP_HANDLE ep) {
  for (int i = 0; i < ranks; ++i) {
    if (peers[i].ep == ep) return i;
  }
  DIE("an event of an unknown endpoint");
}

static void serve_connection(const DAT_EVENT* event) {
  const int i = peer_of(event->event_data.connect_event_data.ep_handle);
  struct peer* peer = &peers[i];
  switch (event->event_number) {
    case DAT_CONNECTION_EVENT_ESTABLISHED:
      for (int number = 0; number < kReceives; ++number) post_receive(i, number);
      peer->state = kConnected;
      break;
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
      /* The peer's request takes the place of ours. */
      if (peer->state != kConnecting || me > i) DIE("rank %d rejected what it should accept", i);
      OK(dat_ep_reset(peer->ep));
      peer->state = kAwaiting;
      if (peer->request != DAT_HANDLE_NULL) accept_request(i);
      break;
    case DAT_CONNECTION_EVENT_DISCONNECTED:
      if (!atomic_load(&over)) DIE("rank %d disconnected too early", i);
      peer->disconnected = true;
      break;
    default:
      DIE("connection event %#x of rank %d", event->event_number, i);
  }
}

static void serve_connections(void) {
  DAT_EVENT event;
  while (dat_evd_dequeue(connections, &event) == DAT_SUCCESS) serve_connection(&event);
}

static void serve_request(const DAT_EVENT* event) {
  const DAT_CR_HANDLE request = event->event_data.cr_arrival_event_data.cr_handle;
  DAT_CR_PARAM param;
  OK(dat_cr_query(request, DAT_CR_FIELD_ALL, &param));
  if (param.private_data_size < (DAT_COUNT)sizeof(int)) DIE("a request without its rank");
  int i;
  memcpy(&i, param.private_data, sizeof i);
  struct peer* peer = &peers[i];
  peer->request = request;
  switch (peer->state) {
    case kUnconnected:
      make_endpoint(i);
      peer->state = kAwaiting;
      accept_request(i);
      break;
    case kConnecting:
      if (me > i) {
        peer->request = DAT_HANDLE_NULL;
        OK(dat_cr_reject(request, 0, NULL));
      }
      break;
    case kAwaiting:
      accept_request(i);
      break;
    case kConnected:
      DIE("rank %d connects twice", i);
  }
}

static void* serve(void* unused) {
  (void)unused;
  while (!atomic_load(&over)) {
    DAT_EVENT event;
    DAT_COUNT more;
    const DAT_RETURN status = dat_evd_wait(requests, 10000, 1, &event, &more);
    pthread_mutex_lock(&lock);
    if (status == DAT_SUCCESS) serve_request(&event);
    serve_connections();
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

static void connect_to(int i) {
  pthread_mutex_lock(&lock);
  struct peer* peer = &peers[i];
  if (peer->state == kUnconnected) {
    make_endpoint(i);
    peer->state = kConnecting;
    OK(dat_ep_connect(peer->ep, (DAT_IA_ADDRESS_PTR)&shared->ranks[i].address, shared->ranks[i].port,
                      DAT_TIMEOUT_INFINITE, sizeof me, &me, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
  }
  while (peer->state != kConnected) {
    serve_connections();
    if (peer->state == kConnected) break;
    pthread_mutex_unlock(&lock);
    usleep(200);
    pthread_mutex_lock(&lock);
  }
  pthread_mutex_unlock(&lock);
}

/* ---- Transfers; the main thread only ---- */

static void serve_transfer(const DAT_EVENT* event) {
  if (event->event_number != DAT_DTO_COMPLETION_EVENT) DIE("event %#x among the transfers", event->event_number);
  const DAT_DTO_COMPLETION_EVENT_DATA* done = &event->event_data.dto_completion_event_data;
  const int i = (int)(done->user_cookie.as_64 >> 16), kind = (int)(done->user_cookie.as_64 >> 8 & 0xff);
  const int number = (int)(done->user_cookie.as_64 & 0xff);
  if (done->status != DAT_DTO_SUCCESS) DIE("transfer %d/%d with rank %d: status %d", kind, number, i, done->status);
  if (done->ep_handle != peers[i].ep) DIE("a completion of another endpoint");
  if (kind != kReceive) {
    --peers[i].outstanding;
    return;
  }
  const struct message* message = &receives[i][number];
  if (message->rank != (uint32_t)i || message->round != peers[i].fences) {
    DIE("rank %d has sent round %u of rank %u, not %u", i, message->round, message->rank, peers[i].fences);
  }
  ++peers[i].fences;
  /* The other thread may still be posting the first ones, and posts to one endpoint are not concurrent. */
  pthread_mutex_lock(&lock);
  post_receive(i, number);
  pthread_mutex_unlock(&lock);
}

static void progress(void) {
  DAT_EVENT event;
  DAT_COUNT more;
  for (int looks = 0; looks < 50; ++looks) {
    if (dat_evd_dequeue(transfers, &event) != DAT_SUCCESS) continue;
    serve_transfer(&event);
    return;
  }
  if (dat_evd_wait(transfers, 5000, 1, &event, &more) == DAT_SUCCESS) serve_transfer(&event);
}

static unsigned char pattern(int from, int to, uint32_t round, int number) {
  return (unsigned char)(1 + from * 67 + to * 31 + (int)round * 7 + number * 13);
}

/* Writes of several lengths, some without a completion, and the message behind them. */
static void put_and_fence(int i, uint32_t round) {
  struct peer* peer = &peers[i];
  while (peer->outstanding > kRequests - kWrites - 1) progress();
  for (int number = 0; number < kWrites; ++number) {
    unsigned char* from = source[round % 2][number];
    const size_t bytes = (size_t)kWriteBytes >> (2 * number);
    DAT_LMR_TRIPLET local = segment(source_context, from, bytes);
    DAT_RMR_TRIPLET remote = shared->ranks[i].window;
    const struct window* there = (const struct window*)(uintptr_t)remote.virtual_address;
    remote.virtual_address = (DAT_VADDR)(uintptr_t)&there->bytes[round % 2][me][number];
    remote.segment_length = (DAT_SEG_LENGTH)bytes;
    const bool suppressed = number % 2 == 0;
    if (!suppressed) ++peer->outstanding;
    OK(dat_ep_post_rdma_write(peer->ep, 1, &local, cookie_of(i, kWrite, number), &remote,
                              suppressed ? DAT_COMPLETION_SUPPRESS_FLAG : DAT_COMPLETION_DEFAULT_FLAG));
  }
  messages[i][round % 2] = (struct message){round, (uint32_t)me};
  DAT_LMR_TRIPLET local = segment(messages_context, &messages[i][round % 2], sizeof(struct message));
  ++peer->outstanding;
  OK(dat_ep_post_send(peer->ep, 1, &local, cookie_of(i, kFence, 0), DAT_COMPLETION_DEFAULT_FLAG));
}

static bool talks_to(int i, uint32_t round) {
  return i != me && (uint32_t)(me ^ i) <= 1 + round / kRoundsOfAPeer;
}

static void check_window(int i, uint32_t round) {
  for (int number = 0; number < kWrites; ++number) {
    const unsigned char wanted = pattern(i, 0, round, number);
    const unsigned char* bytes = window->bytes[round % 2][i][number];
    for (size_t at = 0; at < (size_t)kWriteBytes >> (2 * number); ++at) {
      if (bytes[at] != wanted) DIE("round %u: byte %zu of write %d of rank %d is wrong", round, at, number, i);
    }
  }
}

static void work(void) {
  /* The messages of a peer begin with the first round that has it. */
  for (int i = 0; i < ranks; ++i) {
    while (i != me && !talks_to(i, peers[i].fences)) ++peers[i].fences;
  }
  for (uint32_t round = 0; round < kRounds; ++round) {
    present_round = round;
    /* The sources of the round before the last are free when that round's requests are done. */
    for (int i = 0; i < ranks; ++i) {
      while (peers[i].outstanding > kWrites / 2 + 1) progress();
    }
    for (int number = 0; number < kWrites; ++number) {
      memset(source[round % 2][number], pattern(me, 0, round, number), kWriteBytes);
    }
    for (int turn = 1; turn < ranks; ++turn) {
      const int i = (me + turn) % ranks;
      if (!talks_to(i, round)) continue;
      connect_to(i);
      put_and_fence(i, round);
    }
    for (int i = 0; i < ranks; ++i) {
      while (talks_to(i, round) && peers[i].fences <= round) progress();
    }
    for (int i = 0; i < ranks; ++i) {
      if (talks_to(i, round)) check_window(i, round);
    }
  }
  for (int i = 0; i < ranks; ++i) {
    while (peers[i].outstanding > 0) progress();
  }
}

/* Tells where a rank hangs. */
static void tell_and_end(int number) {
  (void)number;
  for (int i = 0; i < ranks; ++i) {
    DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
    if (peers[i].ep) (void)dat_ep_get_status(peers[i].ep, &state, NULL, NULL);
    fprintf(stderr, "rank %d, round %u: rank %d is in state %d, its endpoint in %d, with %u fences and %d requests\n",
            me, (unsigned)present_round, i, peers[i].state, state, peers[i].fences, peers[i].outstanding);
  }
  _exit(1);
}

static void open_adapter(char* name) {
  DAT_IA_ATTR attr;
  OK(dat_ia_open(name, 8, &async, &ia));
  OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
  OK(dat_pz_create(ia, &pz));
  OK(dat_evd_create(ia, grows ? kEvents : (ranks - 1) * kEvents, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &transfers));
  OK(dat_evd_create(ia, 2 * kMaxRanks, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
  OK(dat_evd_create(ia, 2 * kMaxRanks, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connections));
  const size_t address_size =
      attr.ia_address_ptr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  memcpy(&shared->ranks[me].address, attr.ia_address_ptr, address_size);
  /* dat_psp_create_any is not in every original. */
  DAT_CONN_QUAL port = 20000 + 100 * (DAT_CONN_QUAL)me;
  while (dat_psp_create(ia, port, requests, DAT_PSP_CONSUMER_FLAG, &psp) != DAT_SUCCESS) {
    if (++port % 100 == 0) DIE("no port is free");
  }
  shared->ranks[me].port = port;
  window_context = register_memory(window, sizeof *window, &shared->ranks[me].window);
  receives_context = register_memory(receives, sizeof receives, NULL);
  messages_context = register_memory(messages, sizeof messages, NULL);
  source_context = register_memory(source, 2 * sizeof *source, NULL);
}

static void close_adapter(void) {
  DAT_EVENT event;
  for (int i = 0; i < ranks; ++i) {
    if (peers[i].state == kConnected && me < i) OK(dat_ep_disconnect(peers[i].ep, DAT_CLOSE_GRACEFUL_FLAG));
  }
  for (int i = 0; i < ranks; ++i) {
    while (peers[i].state == kConnected && !peers[i].disconnected) {
      serve_connections();
      usleep(200);
    }
  }
  if (dat_evd_dequeue(async, &event) == DAT_SUCCESS) DIE("asynchronous event %#x", event.event_number);
  for (int i = 0; i < ranks; ++i) {
    if (peers[i].ep) OK(dat_ep_free(peers[i].ep));
  }
  OK(dat_psp_free(psp));
  while (num_lmrs > 0) OK(dat_lmr_free(lmrs[--num_lmrs]));
  OK(dat_evd_free(transfers));
  OK(dat_evd_free(requests));
  OK(dat_evd_free(connections));
  OK(dat_pz_free(pz));
  OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static void run(char* name) {
  pthread_t server;
  window = map(sizeof *window);
  source = map(2 * sizeof *source);
  open_adapter(name);
  if (pthread_create(&server, NULL, serve, NULL) != 0) DIE("no thread");
  barrier(0);
  work();
  barrier(1);
  atomic_store(&over, true);
  pthread_join(server, NULL);
  barrier(2);
  close_adapter();
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  ranks = argc > 2 ? atoi(argv[2]) : 4;
  if (ranks < 2 || ranks > kMaxRanks) return 2;
  grows = argc <= 3;
  shared = map(sizeof *shared);
  pid_t children[kMaxRanks];
  for (me = 0; me < ranks; ++me) {
    children[me] = fork();
    if (children[me] != 0) continue;
    signal(SIGALRM, tell_and_end);
    alarm(kPatience_s);
    run(argv[1]);
    _exit(0);
  }
  me = -1;
  int failed = 0;
  for (int left = ranks; left > 0; --left) {
    int status;
    const pid_t ended = wait(&status);
    if (status == 0) continue;
    for (int i = 0; i < ranks; ++i) {
      if (children[i] == ended) fprintf(stderr, "rank %d ended with %#x\n", i, status);
      if (!failed && children[i] != ended) kill(children[i], SIGTERM);
    }
    failed = 1;
  }
  if (!failed) printf("%d ranks, %d rounds: every window was right after each fence\n", ranks, kRounds);
  return failed;
}
