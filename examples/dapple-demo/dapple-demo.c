/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * dapple-demo: two uDAPL endpoints move data by RDMA Write and RDMA Read, synchronise memory before and after, and
 * check every byte. It is an example to learn from, and can be read from top to bottom:
 *
 *   1. the version of the API     4. waiting for events     7. RDMA Writes and Reads    10. both sides, and main
 *   2. errors                     5. memory                 8. the server
 *   3. the objects of a side      6. messages               9. the client
 *
 * The server exposes a buffer. The two sides take turns, and the client begins, as iWARP wants it:
 *
 *   client  NEXT
 *   server  READY    the buffer's address, length and RMR context
 *   client           RDMA Writes a pattern into a range of the buffer
 *   client  WRITTEN  the range and the pattern's seed
 *   server           checks every byte, inverts every byte
 *   server  CHANGED
 *   client           RDMA Reads the range and checks every byte
 *
 * and so on from NEXT to READY, which the client answers with DONE when it has no more ranges; then it disconnects.
 */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * 1. The version of the API: 2.0, or 1.2 with -DDEMO_DAT_1_2. A program like this one needs no other distinction.
 */
#ifdef DEMO_DAT_1_2
#include <dat/udat.h>
typedef DAT_VLEN segment_length;
#define REMOTE_ADDRESS target_address
#define REJECT(cr) dat_cr_reject(cr)
#define LMR_CREATE(ia, type, where, length, pz, privileges, ...) \
  dat_lmr_create(ia, type, where, length, pz, privileges, __VA_ARGS__)
#else
#include <dat2/udat.h>
typedef DAT_SEG_LENGTH segment_length;
#define REMOTE_ADDRESS virtual_address
#define REJECT(cr) dat_cr_reject(cr, 0, NULL)
#define LMR_CREATE(ia, type, where, length, pz, privileges, ...) \
  dat_lmr_create(ia, type, where, length, pz, privileges, DAT_VA_TYPE_VA, __VA_ARGS__)
#endif

/*
 * 2. Errors. The program ends with one line that says what is wrong and what to do. The kernel and the libraries
 * release a dead process' resources, so nothing is freed before.
 */
static const char* role = "dapple-demo";

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  fflush(stdout);
  fprintf(stderr, "%s: %s\n", role, line);
  exit(1);
}

/* A name such as "DAT_INVALID_PARAMETER DAT_INVALID_ARG2". The text lives until the next call. */
static const char* name_of(DAT_RETURN result) {
  static char name[128];
  const char* type = NULL;
  const char* subtype = NULL;
  if (dat_strerror(result, &type, &subtype) != DAT_SUCCESS) {
    snprintf(name, sizeof name, "0x%08x", (unsigned)result);
  } else if (!subtype || !subtype[0] || strcmp(subtype, "DAT_NO_SUBTYPE") == 0) {
    snprintf(name, sizeof name, "%s", type);
  } else {
    snprintf(name, sizeof name, "%s %s", type, subtype);
  }
  return name;
}

/* Ends the program unless CALL returned DAT_SUCCESS. ADVICE tells the user what to do. */
static void must(DAT_RETURN result, const char* call, const char* advice) {
  if (result != DAT_SUCCESS) fail("%s: %s; %s", call, name_of(result), advice);
}

/*
 * 3. The objects of a side: an open Interface Adapter (IA) with one Endpoint (EP), the Event Dispatchers (EVDs) on
 * which its events arrive, and a Protection Zone (PZ) for the memory that it may use. One thread uses them.
 */
struct options {
  const char* ia_name; /* NULL: the first IA that opens */
  const char* server;  /* the client's: the server's address or host name; NULL: this IA's own address */
  uint16_t port;
  unsigned timeout_s; /* the longest wait for the peer */
  uint64_t largest_size;
  int listens_fd; /* the server's: where it writes a byte when it listens; -1: it tells the user */
};

/* Memory that the device may use, registered as a Local Memory Region (LMR). */
struct region {
  unsigned char* memory; /* on a page boundary */
  size_t length;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_CONTEXT lmr_context; /* names it in this side's requests */
  DAT_RMR_CONTEXT rmr_context; /* names it in the peer's requests */
};

struct side {
  const struct options* options;
  const char* ia_name;
  DAT_IA_HANDLE ia;
  DAT_EVD_HANDLE async_evd;
  DAT_IA_ATTR ia_attr;
  DAT_PROVIDER_ATTR provider_attr;
  DAT_PZ_HANDLE pz;
  DAT_EVD_HANDLE request_evd;    /* completions of Sends, RDMA Writes and RDMA Reads */
  DAT_EVD_HANDLE receive_evd;    /* completions of receives */
  DAT_EVD_HANDLE connection_evd; /* the connection's events */
  DAT_EP_HANDLE ep;
  int peer_gone;
  struct region mail; /* for messages */
  int sending;        /* a Send whose completion was not taken yet */
};

/* Requests and receives that may be outstanding at once. */
enum { kMaxRequests = 8, kMaxReceives = 4 };
enum { kAsyncQueue = 8, kMaxListedProviders = 128 };

static DAT_RETURN open_ia(struct side* side, const char* ia_name) {
  side->async_evd = DAT_HANDLE_NULL; /* none: dat_ia_open creates it */
  side->ia_name = ia_name;
  return dat_ia_open((DAT_NAME_PTR)ia_name, kAsyncQueue, &side->async_evd, &side->ia);
}

static int machine_has_rdma_device(void) {
  int entries = 0;
  DIR* devices = opendir("/sys/class/infiniband");
  while (devices && readdir(devices)) entries++;
  if (devices) closedir(devices);
  /* Two entries are the folder itself and its parent. dapple-run names its driver in the environment. */
  return entries > 2 || getenv("RDMAV_DRIVERS");
}

static _Noreturn void fail_to_open(const char* ia_name, DAT_RETURN result) {
  if (!machine_has_rdma_device()) {
    fail("this machine has no RDMA device; 'dapple-run COMMAND' runs a command with a software device");
  }
  if (DAT_GET_TYPE(result) == DAT_PROVIDER_NOT_FOUND) {
    fail("no provider for %s (%s); 'dapple-info --dat' shows the names that open", ia_name, name_of(result));
  }
  fail("cannot open %s: %s; see that its dat.conf line names a network device with an RDMA device on it (rdma link)",
       ia_name, name_of(result));
}

/* Opens the first IA of dat.conf that opens. */
static void open_first_ia(struct side* side) {
  static DAT_PROVIDER_INFO infos[kMaxListedProviders];
  DAT_PROVIDER_INFO* list[kMaxListedProviders];
  DAT_COUNT listed = 0;
  DAT_RETURN result = DAT_PROVIDER_NOT_FOUND;
  for (int i = 0; i < kMaxListedProviders; i++) list[i] = &infos[i];
  must(dat_registry_list_providers(kMaxListedProviders, &listed, list), "dat_registry_list_providers",
       "is dat.conf readable?");
  for (DAT_COUNT i = 0; i < listed; i++) {
    if (infos[i].dapl_version_major != DAT_VERSION_MAJOR || infos[i].is_thread_safe) continue;
    result = open_ia(side, infos[i].ia_name);
    if (result == DAT_SUCCESS) return;
  }
  fail_to_open(listed == 1 ? infos[0].ia_name : "any registered name", result);
}

static DAT_EVD_HANDLE create_evd(struct side* side, DAT_COUNT length, DAT_EVD_FLAGS flags) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  must(dat_evd_create(side->ia, length, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create",
       "the device has no completion queue left");
  return evd;
}

static void create_ep(struct side* side) {
  DAT_EP_ATTR attr;
  memset(&attr, 0, sizeof attr);
  attr.service_type = DAT_SERVICE_TYPE_RC;
  attr.max_message_size = side->ia_attr.max_message_size;
  attr.max_rdma_size = side->ia_attr.max_rdma_size;
  attr.qos = DAT_QOS_BEST_EFFORT;
  attr.max_recv_dtos = kMaxReceives;
  attr.max_request_dtos = kMaxRequests;
  attr.max_recv_iov = 1;
  attr.max_request_iov = 1;
  attr.max_rdma_read_in = 1;
  attr.max_rdma_read_out = 1;
  attr.max_rdma_read_iov = 1;
  attr.max_rdma_write_iov = 1;
  must(dat_ep_create(side->ia, side->pz, side->receive_evd, side->request_evd, side->connection_evd, &attr, &side->ep),
       "dat_ep_create", "the device has no queue pair left");
}

static void open_side(struct side* side, const struct options* options) {
  memset(side, 0, sizeof *side);
  side->options = options;
  if (options->ia_name) {
    const DAT_RETURN result = open_ia(side, options->ia_name);
    if (result != DAT_SUCCESS) fail_to_open(options->ia_name, result);
  } else {
    open_first_ia(side);
  }
  must(dat_ia_query(side->ia, &side->async_evd, DAT_IA_FIELD_ALL, &side->ia_attr, DAT_PROVIDER_FIELD_ALL,
                    &side->provider_attr),
       "dat_ia_query", "the provider does not answer");
  must(dat_pz_create(side->ia, &side->pz), "dat_pz_create", "the device has no protection domain left");
  side->request_evd = create_evd(side, kMaxRequests, DAT_EVD_DTO_FLAG);
  side->receive_evd = create_evd(side, kMaxReceives, DAT_EVD_DTO_FLAG);
  side->connection_evd = create_evd(side, 4, DAT_EVD_CONNECTION_FLAG);
  create_ep(side);
}

/* The end begins with the EP, because the posted receives keep their memory in use. */
static void free_endpoint(struct side* side) {
  must(dat_ep_free(side->ep), "dat_ep_free", "the endpoint should have been disconnected");
}

/* The last step. All memory must have been freed. */
static void close_side(struct side* side) {
  const char* advice = "the provider miscounted its objects";
  must(dat_evd_free(side->connection_evd), "dat_evd_free", advice);
  must(dat_evd_free(side->receive_evd), "dat_evd_free", advice);
  must(dat_evd_free(side->request_evd), "dat_evd_free", advice);
  must(dat_pz_free(side->pz), "dat_pz_free", advice);
  must(dat_ia_close(side->ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close", advice);
}

/*
 * 4. Waiting for events, never longer than the time-out and never for a peer that has left.
 */
enum { kLookAroundUs = 200000 }; /* the interval at which a wait checks that the peer is still connected */

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void look_for_disconnection(struct side* side) {
  DAT_EVENT event;
  while (!side->peer_gone && dat_evd_dequeue(side->connection_evd, &event) == DAT_SUCCESS) {
    side->peer_gone = event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED;
  }
}

/* Waits until EVD has an event. WHAT names it for the user. */
static DAT_EVENT await_event(struct side* side, DAT_EVD_HANDLE evd, const char* what) {
  const double deadline = now_s() + side->options->timeout_s;
  DAT_EVENT event;
  for (;;) {
    DAT_COUNT more = 0;
    const DAT_RETURN result = dat_evd_wait(evd, kLookAroundUs, 1, &event, &more);
    if (result == DAT_SUCCESS) return event;
    if (DAT_GET_TYPE(result) != DAT_TIMEOUT_EXPIRED && DAT_GET_TYPE(result) != DAT_INTERRUPTED_CALL) {
      fail("dat_evd_wait for %s: %s", what, name_of(result));
    }
    if (evd != side->connection_evd) {
      look_for_disconnection(side);
      /* The peer's last words may have arrived before it left. */
      if (side->peer_gone && dat_evd_dequeue(evd, &event) == DAT_SUCCESS) return event;
      if (side->peer_gone) {
        fail("the peer closed the connection or died while we waited for %s; see its output", what);
      }
    }
    if (now_s() >= deadline) {
      fail("gave up after %u s of waiting for %s; is the peer alive? (--timeout gives it longer)",
           side->options->timeout_s, what);
    }
  }
}

static const char* text_of(DAT_DTO_COMPLETION_STATUS status) {
  switch (status) {
    case DAT_DTO_ERR_FLUSHED:
      return "flushed, the peer closed the connection or died";
    case DAT_DTO_ERR_REMOTE_ACCESS:
      return "the peer's memory refused the access";
    case DAT_DTO_ERR_REMOTE_RESPONDER:
      return "the peer's device failed";
    case DAT_DTO_ERR_TRANSPORT:
      return "the peer no longer answers";
    case DAT_DTO_ERR_RECEIVER_NOT_READY:
      return "the peer posted no receive";
    default:
      return "an error of this side";
  }
}

/* Waits for a request or a receive, which must succeed. Returns its event's data. */
static DAT_DTO_COMPLETION_EVENT_DATA await_completion(struct side* side, DAT_EVD_HANDLE evd, const char* what) {
  const DAT_EVENT event = await_event(side, evd, what);
  const DAT_DTO_COMPLETION_EVENT_DATA* completion = &event.event_data.dto_completion_event_data;
  if (event.event_number != DAT_DTO_COMPLETION_EVENT) {
    fail("%s: event 0x%x came instead; has the peer died?", what, (unsigned)event.event_number);
  }
  if (completion->status != DAT_DTO_SUCCESS) {
    fail("%s: %s (status %d)", what, text_of(completion->status), (int)completion->status);
  }
  return *completion;
}

/* WHOM is the peer's address, for the user. */
static void await_connection(struct side* side, const char* whom) {
  const DAT_EVENT event = await_event(side, side->connection_evd, "the connection");
  switch (event.event_number) {
    case DAT_CONNECTION_EVENT_ESTABLISHED:
      return;
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
      fail("%s refused: the program that listens there is not a server of this program", whom);
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
      fail("%s: no server listens there; start 'dapple-demo server' first, with the same --port", whom);
    case DAT_CONNECTION_EVENT_UNREACHABLE:
      fail("%s cannot be reached; the address must be one of an RDMA device's network device", whom);
    case DAT_CONNECTION_EVENT_TIMED_OUT:
      fail("%s does not answer; is the machine up?", whom);
    default:
      fail("%s: no connection (event 0x%x)", whom, (unsigned)event.event_number);
  }
}

static void await_disconnection(struct side* side) {
  while (!side->peer_gone) {
    const DAT_EVENT event = await_event(side, side->connection_evd, "the end of the connection");
    side->peer_gone = event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED;
  }
}

/*
 * 5. Memory. A device may use only memory that is registered, with the access rights that it was registered for.
 */
enum { kPage = 4096 };
enum {
  kLocal = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
  kRemote = DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG
};

static void create_region(struct side* side, struct region* region, uint64_t length, unsigned privileges) {
  DAT_REGION_DESCRIPTION where;
  DAT_VLEN registered_length = 0;
  DAT_VADDR registered_address = 0;
  region->length = (length + kPage - 1) / kPage * kPage;
  region->memory = aligned_alloc(kPage, region->length);
  if (!region->memory) {
    fail("no memory for a buffer of %zu bytes; choose a smaller --max-size", region->length);
  }
  memset(region->memory, 0, region->length);
  memset(&where, 0, sizeof where);
  where.for_va = region->memory;
  must(LMR_CREATE(side->ia, DAT_MEM_TYPE_VIRTUAL, where, region->length, side->pz, (DAT_MEM_PRIV_FLAGS)privileges,
                  &region->lmr, &region->lmr_context, &region->rmr_context, &registered_length, &registered_address),
       "dat_lmr_create", "raise the limit of locked memory (ulimit -l) or choose a smaller --max-size");
}

static void free_region(struct region* region) {
  must(dat_lmr_free(region->lmr), "dat_lmr_free", "the region is still in use");
  free(region->memory);
}

/* A segment names bytes of a region in a request. */
static DAT_LMR_TRIPLET segment_of(const struct region* region, size_t offset, size_t length) {
  DAT_LMR_TRIPLET segment;
  segment.virtual_address = (DAT_VADDR)(size_t)(region->memory + offset);
  segment.segment_length = (segment_length)length;
  segment.lmr_context = region->lmr_context;
  return segment;
}

/* The device wrote, or is going to write: its data become visible to this CPU, and no cache keeps an older line. */
static void sync_device_writes(struct side* side, const DAT_LMR_TRIPLET* range) {
  must(dat_lmr_sync_rdma_write(side->ia, range, 1), "dat_lmr_sync_rdma_write", "the range is inside of the LMR");
}

/* This CPU wrote, and the device is going to read: it will see the data. */
static void sync_device_reads(struct side* side, const DAT_LMR_TRIPLET* range) {
  must(dat_lmr_sync_rdma_read(side->ia, range, 1), "dat_lmr_sync_rdma_read", "the range is inside of the LMR");
}

/*
 * A range of the buffer has guards on both sides that must stay as they are: two cache lines of the largest size in
 * use. It starts up to kMaxOffset bytes behind a page boundary and the guard.
 */
enum { kGuardBytes = 256, kMaxOffset = 63 };
static const unsigned char kGuardValue = 0x5a;

static uint64_t buffer_size(const struct options* options) {
  return 2 * kGuardBytes + kMaxOffset + options->largest_size;
}

/* The pattern is pseudo-random (splitmix64), so that a shifted, stale or repeated piece is found. */
static uint64_t pattern_word(uint64_t seed, uint64_t index) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + (index + 1) * 0xd1342543de82ef95u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static void fill(unsigned char* at, size_t length, uint64_t seed) {
  for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
    const uint64_t word = pattern_word(seed, done / sizeof word);
    memcpy(at + done, &word, length - done < sizeof word ? length - done : sizeof word);
  }
}

static void invert(unsigned char* at, size_t length) {
  for (size_t i = 0; i < length; i++) at[i] = (unsigned char)~at[i];
}

/* MASK is 0 for the pattern, and all ones for the inverted pattern. WHAT says when this was checked. */
static void must_match(const unsigned char* at, size_t length, uint64_t seed, uint64_t mask, const char* what) {
  for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
    const uint64_t word = pattern_word(seed, done / sizeof word) ^ mask;
    const size_t left = length - done < sizeof word ? length - done : sizeof word;
    if (memcmp(at + done, &word, left) == 0) continue;
    size_t wrong = done;
    while (at[wrong] == ((const unsigned char*)&word)[wrong - done]) wrong++;
    fail("%s: byte %zu of %zu is 0x%02x, which is wrong; the data did not arrive as it was sent", what, wrong, length,
         at[wrong]);
  }
  for (size_t i = 0; i < kGuardBytes; i++) {
    if (at[length + i] == kGuardValue && *(at - kGuardBytes + i) == kGuardValue) continue;
    fail("%s: a byte beside the range of %zu bytes was overwritten: memory is corrupt", what, length);
  }
}

/*
 * 6. Messages, by Send. On the wire every number is big-endian, so that the two machines may differ.
 *
 * An answer shows that the Send before it has arrived, so a side waits for the completion of its Send only after the
 * answer. The server never waits for the completion of the last READY: the client may leave before the server's device
 * gets the acknowledgement, and the Send is then flushed.
 */
enum message_type { kReady = 1, kWritten, kChanged, kNext, kDone };

struct message {
  uint32_t type;
  uint32_t rmr_context; /* READY */
  uint64_t address;     /* READY: of the buffer; WRITTEN: of the range */
  uint64_t length;      /* likewise */
  uint64_t seed;        /* WRITTEN */
};
_Static_assert(sizeof(struct message) == 32, "the peer expects 32 bytes");

/* The memory for messages has a slot for each receive, and the last for the Send. */
enum { kSendSlot = kMaxReceives, kSlots, kSlotBytes = 64 };

static struct message* slot(struct side* side, size_t number) {
  return (struct message*)(void*)(side->mail.memory + number * kSlotBytes);
}

static void post_receive(struct side* side, size_t number) {
  DAT_LMR_TRIPLET segment = segment_of(&side->mail, number * kSlotBytes, sizeof(struct message));
  const DAT_DTO_COOKIE cookie = {.as_64 = number};
  must(dat_ep_post_recv(side->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv",
       "the receive queue should have had room");
}

/* uDAPL allows receives before there is a connection, and an early message needs them. */
static void open_mail(struct side* side) {
  create_region(side, &side->mail, kSlots * kSlotBytes, kLocal);
  for (size_t number = 0; number < kMaxReceives; number++) post_receive(side, number);
}

static void send_message(struct side* side, const struct message* message) {
  DAT_LMR_TRIPLET segment = segment_of(&side->mail, kSendSlot * kSlotBytes, sizeof *message);
  const DAT_DTO_COOKIE cookie = {.as_64 = kSendSlot};
  *slot(side, kSendSlot) = (struct message){.type = htobe32(message->type),
                                            .rmr_context = htobe32(message->rmr_context),
                                            .address = htobe64(message->address),
                                            .length = htobe64(message->length),
                                            .seed = htobe64(message->seed)};
  must(dat_ep_post_send(side->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send",
       "is the peer alive?");
  side->sending = 1;
}

/* Waits until the peer has the last message. */
static void settle_message(struct side* side) {
  if (side->sending) (void)await_completion(side, side->request_evd, "the completion of a Send");
  side->sending = 0;
}

/* Waits for a message of type TYPE or ALSO; any other ends the program. */
static struct message receive_message(struct side* side, enum message_type type, enum message_type also) {
  const DAT_DTO_COMPLETION_EVENT_DATA received = await_completion(side, side->receive_evd, "the peer's message");
  const uint64_t number = received.user_cookie.as_64;
  if (received.transfered_length != sizeof(struct message) || number >= kMaxReceives) {
    fail("the peer's message has %u bytes instead of %zu; is it the same version of this program?",
         (unsigned)received.transfered_length, sizeof(struct message));
  }
  const struct message* wire = slot(side, number);
  const struct message message = {.type = be32toh(wire->type),
                                  .rmr_context = be32toh(wire->rmr_context),
                                  .address = be64toh(wire->address),
                                  .length = be64toh(wire->length),
                                  .seed = be64toh(wire->seed)};
  post_receive(side, number);
  if (message.type != type && message.type != also) {
    fail("message %u from the peer where %u was due; is it the same version of this program?", message.type, type);
  }
  if (message.type != kDone) settle_message(side);
  return message;
}

/*
 * 7. RDMA Writes and RDMA Reads, in pieces that the device supports.
 */
enum direction { kRdmaWrite, kRdmaRead };

/*
 * Moves LENGTH bytes between LOCAL at OFFSET and the peer's memory, TIMES over, and waits until all of it is done.
 * Returns the rate in MB/s.
 */
static double transfer(struct side* side, enum direction direction, const struct region* local, size_t offset,
                       uint64_t remote_address, DAT_RMR_CONTEXT rmr_context, uint64_t length, unsigned times) {
  const char* what = direction == kRdmaWrite ? "the completion of an RDMA Write" : "the completion of an RDMA Read";
  const DAT_DTO_COOKIE cookie = {.as_64 = 0};
  const uint64_t largest_piece = side->ia_attr.max_rdma_size;
  const double start = now_s();
  unsigned outstanding = 0;
  for (unsigned time = 0; time < times; time++) {
    for (uint64_t done = 0, piece; done < length; done += piece) {
      piece = length - done < largest_piece ? length - done : largest_piece;
      DAT_LMR_TRIPLET here = segment_of(local, offset + done, piece);
      const DAT_RMR_TRIPLET there = {
          .REMOTE_ADDRESS = remote_address + done, .segment_length = (segment_length)piece, .rmr_context = rmr_context};
      if (outstanding == kMaxRequests) {
        (void)await_completion(side, side->request_evd, what);
        outstanding--;
      }
      if (direction == kRdmaWrite) {
        must(dat_ep_post_rdma_write(side->ep, 1, &here, cookie, &there, DAT_COMPLETION_DEFAULT_FLAG),
             "dat_ep_post_rdma_write", "is the peer alive?");
      } else {
        must(dat_ep_post_rdma_read(side->ep, 1, &here, cookie, &there, DAT_COMPLETION_DEFAULT_FLAG),
             "dat_ep_post_rdma_read", "is the peer alive?");
      }
      outstanding++;
    }
  }
  for (; outstanding > 0; outstanding--) (void)await_completion(side, side->request_evd, what);
  return (double)length * times / 1e6 / (now_s() - start);
}

/*
 * 8. The server exposes a buffer, and the client's messages report what the client has done to it.
 */
enum { kDefaultPort = 18420 };

/* The private data of a connection request: a server recognises the clients of this program by it. */
#define GREETING "dapple-demo 2"

static void say_that_it_listens(const struct side* server) {
  const struct options* options = server->options;
  const struct sockaddr* address = server->ia_attr.ia_address_ptr;
  const socklen_t length = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  char text[NI_MAXHOST];
  if (getnameinfo(address, length, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0) {
    fail("%s has no IP address; add one to its network device (ip addr add)", server->ia_name);
  }
  if (options->listens_fd >= 0) {
    if (write(options->listens_fd, "", 1) != 1) fail("the client is gone");
    return;
  }
  printf("%s listens on %s port %u; now run: dapple-demo client %s\n", server->ia_name, text, (unsigned)options->port,
         text);
  fflush(stdout);
}

/* Waits for a connection request of this program's client, and accepts it. Others are refused. */
static void accept_client(struct side* server, DAT_EVD_HANDLE request_evd) {
  for (;;) {
    const DAT_EVENT event = await_event(server, request_evd, "a client");
    DAT_CR_PARAM request;
    if (event.event_number != DAT_CONNECTION_REQUEST_EVENT) {
      fail("event 0x%x instead of a connection request", (unsigned)event.event_number);
    }
    const DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;
    must(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request), "dat_cr_query", "the request should have been there");
    if (request.private_data_size >= (DAT_COUNT)sizeof GREETING &&
        memcmp(request.private_data, GREETING, sizeof GREETING) == 0) {
      must(dat_cr_accept(cr, server->ep, 0, NULL), "dat_cr_accept", "is the client gone?");
      return;
    }
    must(REJECT(cr), "dat_cr_reject", "is the client gone?");
  }
}

/* The range that the client names; it must lie inside of the buffer, with its guards. */
static DAT_LMR_TRIPLET range_of(const struct region* buffer, const struct message* written) {
  const uint64_t start = (uint64_t)(size_t)buffer->memory;
  if (written->length > buffer->length - 2 * kGuardBytes || written->address < start + kGuardBytes ||
      written->address - start > buffer->length - written->length - kGuardBytes) {
    fail("the client names %" PRIu64 " bytes outside of the buffer; is it the same version of this program?",
         written->length);
  }
  return segment_of(buffer, (size_t)(written->address - start), (size_t)written->length);
}

static void serve_range(struct side* server, const DAT_LMR_TRIPLET* range, uint64_t seed) {
  unsigned char* at = (unsigned char*)(size_t)range->virtual_address;
  const struct message changed = {.type = kChanged};

  sync_device_writes(server, range);
  must_match(at, range->segment_length, seed, 0, "after the client's RDMA Write");

  invert(at, range->segment_length);
  sync_device_reads(server, range);
  send_message(server, &changed);
}

/* Serves ranges until the client reports that it is done. */
static void serve_client(struct side* server, struct region* buffer) {
  const struct message ready = {.type = kReady,
                                .rmr_context = buffer->rmr_context,
                                .address = (uint64_t)(size_t)buffer->memory,
                                .length = buffer->length};
  (void)receive_message(server, kNext, kNext);
  for (;;) {
    send_message(server, &ready);
    const struct message written = receive_message(server, kWritten, kDone);
    if (written.type == kDone) return;
    const DAT_LMR_TRIPLET range = range_of(buffer, &written);
    serve_range(server, &range, written.seed);
    (void)receive_message(server, kNext, kNext);

    /*
     * The client may write here next. No cache may keep a line of ours until then, because it could later be written
     * back over the client's data.
     */
    memset((unsigned char*)(size_t)range.virtual_address, kGuardValue, range.segment_length);
    sync_device_writes(server, &range);
  }
}

/* Returns only if every byte was right. */
static void run_server(const struct options* options) {
  static struct side server;
  struct region buffer;
  DAT_PSP_HANDLE service_point = DAT_HANDLE_NULL;

  open_side(&server, options);
  open_mail(&server);
  create_region(&server, &buffer, buffer_size(options), kLocal | kRemote);
  memset(buffer.memory, kGuardValue, buffer.length);
  const DAT_LMR_TRIPLET whole = segment_of(&buffer, 0, buffer.length);
  sync_device_writes(&server, &whole);

  const DAT_EVD_HANDLE request_evd = create_evd(&server, 4, DAT_EVD_CR_FLAG);
  must(dat_psp_create(server.ia, options->port, request_evd, DAT_PSP_CONSUMER_FLAG, &service_point), "dat_psp_create",
       "another server may have this port: choose one with --port");
  say_that_it_listens(&server);

  accept_client(&server, request_evd);
  await_connection(&server, "the client");
  serve_client(&server, &buffer);
  await_disconnection(&server);

  must(dat_psp_free(service_point), "dat_psp_free", "the service point should have been idle");
  must(dat_evd_free(request_evd), "dat_evd_free", "the EVD should have been idle");
  free_endpoint(&server);
  free_region(&buffer);
  free_region(&server.mail);
  close_side(&server);
}

/*
 * 9. The client writes into the server's buffer and reads the server's changes back.
 */

/* Powers of four, and sizes close to those of lines, of pages and of the largest request. */
static const uint64_t kLargestSize = 16u << 20;
static const uint64_t kSizes[] = {1,    3,    16,    63,    64,    65,     256,     1000,    1024,
                                  4095, 4096, 16384, 65536, 65537, 262144, 1048576, 4194304, 16777216};

/* The starts of ranges: on a line, in the middle of one, on its last byte. */
static const unsigned kOffsets[] = {0, 1, kMaxOffset};

/* A transfer is repeated until it has moved this much, so that small sizes have a rate too. */
enum { kTimedBytes = 65536, kMaxTimes = 32 };

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

struct client {
  struct side side;
  struct region source; /* what we write from */
  struct region sink;   /* what we read into */
  struct message ready; /* the server's buffer */
};

static void connect_to_server(struct side* side) {
  const struct options* options = side->options;
  const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo* found = NULL;
  char greeting[] = GREETING;
  const int error = options->server ? getaddrinfo(options->server, NULL, &hints, &found) : 0;
  if (error != 0) {
    fail("%s: %s; give the address of the server's RDMA device", options->server, gai_strerror(error));
  }
  /* The provider gives up a little before us, because it can report the reason. */
  must(dat_ep_connect(side->ep, found ? found->ai_addr : side->ia_attr.ia_address_ptr, options->port,
                      options->timeout_s * 900000u, sizeof greeting, greeting, DAT_QOS_BEST_EFFORT,
                      DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect", "the address must be one that this machine can route to");
  await_connection(side, options->server ? options->server : "the server");
  if (found) freeaddrinfo(found);
}

/* The value of a provider-specific attribute, or "-": each provider has its own names. */
static const char* attribute(const struct side* side, const char* name) {
  const DAT_PROVIDER_ATTR* attr = &side->provider_attr;
  for (DAT_COUNT i = 0; i < attr->num_provider_specific_attr; i++) {
    const DAT_NAMED_ATTR* named = &attr->provider_specific_attr[i];
    if (named->name && named->value && strcmp(named->name, name) == 0 && named->value[0]) return named->value;
  }
  return "-";
}

static void print_device(const struct side* side) {
  const char* device = attribute(side, "DAT_IB_DEVICE_NAME");
  const char* coherence = attribute(side, "DAPPLE_COHERENCE");
  const char* line_size = attribute(side, "DAPPLE_LINE_SIZE");
  const int known = strcmp(coherence, "-") != 0;
  printf("  %-24s %s (%s)\n", "interface adapter", side->ia_name, side->provider_attr.provider_name);
  printf("  %-24s %s\n", "device", strcmp(device, "-") == 0 ? side->ia_attr.adapter_name : device);
  printf("  %-24s %s, MTU %s\n", "transport", attribute(side, "DAPPLE_TRANSPORT"),
         attribute(side, "DAT_IB_TRANSPORT_MTU"));
  printf("  %-24s %s%s%s\n", "coherence", coherence, known ? ": " : "",
         known ? attribute(side, "DAPPLE_COHERENCE_REASON") : "");
  printf("  %-24s %s%s\n", "cache line", line_size, strcmp(line_size, "-") == 0 ? "" : " bytes");
  printf("  %-24s %s\n", "clean", attribute(side, "DAPPLE_CLEAN_INSTRUCTION"));
  printf("  %-24s %s\n", "clean and invalidate", attribute(side, "DAPPLE_CLEAN_INVALIDATE_INSTRUCTION"));
  printf("  %-24s %s\n", "lmr_sync_req", side->provider_attr.lmr_sync_req ? "true" : "false");
}

static void ask_for_the_buffer(struct client* client) {
  const struct message next = {.type = kNext};
  send_message(&client->side, &next);
  client->ready = receive_message(&client->side, kReady, kReady);
}

static unsigned times_for(uint64_t size) {
  const uint64_t times = kTimedBytes / size;
  return times < 1 ? 1 : times > kMaxTimes ? kMaxTimes : (unsigned)times;
}

/* Tests one range: writes it, has it checked and changed, reads it back and checks it. Adds to the rates. */
static void run_range(struct client* client, uint64_t size, unsigned offset, uint64_t seed, double* write_mb_s,
                      double* read_mb_s) {
  struct side* side = &client->side;
  const size_t at = kGuardBytes + offset;
  const uint64_t remote = client->ready.address + at;
  const unsigned times = times_for(size);
  const struct message written = {.type = kWritten, .address = remote, .length = size, .seed = seed};

  fill(client->source.memory + at, size, seed);
  *write_mb_s += transfer(side, kRdmaWrite, &client->source, at, remote, client->ready.rmr_context, size, times);
  send_message(side, &written);
  (void)receive_message(side, kChanged, kChanged);

  memset(client->sink.memory + offset, kGuardValue, size + 2 * kGuardBytes);
  *read_mb_s += transfer(side, kRdmaRead, &client->sink, at, remote, client->ready.rmr_context, size, times);
  must_match(client->sink.memory + at, size, seed, UINT64_MAX, "after our RDMA Read");
  ask_for_the_buffer(client);
}

/* Returns the bytes that were checked: by the server after the RDMA Writes, and by us after the RDMA Reads. */
static uint64_t run_size(struct client* client, uint64_t size) {
  const unsigned ranges = COUNT(kOffsets);
  const uint64_t verified = 2 * size * ranges;
  double write_mb_s = 0, read_mb_s = 0;
  for (unsigned i = 0; i < ranges; i++) {
    run_range(client, size, kOffsets[i], size * ranges + i, &write_mb_s, &read_mb_s);
  }
  printf("  %10" PRIu64 " %7u %16" PRIu64 " %12.2f %12.2f\n", size, ranges, verified, write_mb_s / ranges,
         read_mb_s / ranges);
  fflush(stdout);
  return verified;
}

static void open_client(struct client* client, const struct options* options) {
  unsigned sink_privileges = kLocal;
  open_side(&client->side, options);
  /* On iWARP the peer answers an RDMA Read with a kind of write. */
  if (client->side.provider_attr.rdma_write_for_rdma_read_req) sink_privileges |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
  open_mail(&client->side);
  create_region(&client->side, &client->source, buffer_size(options), DAT_MEM_PRIV_LOCAL_READ_FLAG);
  create_region(&client->side, &client->sink, buffer_size(options), sink_privileges);
}

static void close_client(struct client* client) {
  must(dat_ep_disconnect(client->side.ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect", "is the server gone?");
  await_disconnection(&client->side);
  free_endpoint(&client->side);
  free_region(&client->sink);
  free_region(&client->source);
  free_region(&client->side.mail);
  close_side(&client->side);
}

/* Runs all sizes and prints the table. Returns only if every byte was right. */
static void run_client(const struct options* options) {
  static struct client client;
  const struct message done = {.type = kDone};
  unsigned sizes = 0;
  uint64_t verified = 0;

  open_client(&client, options);
  connect_to_server(&client.side);
  ask_for_the_buffer(&client);
  if (client.ready.length < buffer_size(options)) {
    fail("the server's buffer has %" PRIu64 " bytes only; use the same --max-size on both sides", client.ready.length);
  }
  print_device(&client.side);
  printf("\n  %10s %7s %16s %12s %12s\n", "size", "ranges", "bytes verified", "write MB/s", "read MB/s");
  for (; sizes < COUNT(kSizes) && kSizes[sizes] <= options->largest_size; sizes++) {
    verified += run_size(&client, kSizes[sizes]);
  }
  send_message(&client.side, &done);
  settle_message(&client.side);
  close_client(&client);
  printf("\n  all %u sizes verified: %" PRIu64 " bytes, every one of them right, and none beside them touched\n", sizes,
         verified);
}

/*
 * 10. Both sides on this machine, the server in a process of its own; and main.
 */

static _Noreturn void be_server(struct options* options, int listens_fd, pid_t client) {
  role = "dapple-demo server";
  prctl(PR_SET_PDEATHSIG, SIGTERM); /* the server must not wait for a client that has ended */
  if (getppid() != client) exit(1);
  options->listens_fd = listens_fd;
  run_server(options);
  exit(0);
}

/* If the server failed, it has printed a line, so this exits with its code and prints nothing. */
static void await_server(pid_t server) {
  int status = 0;
  while (waitpid(server, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) fail("signal %d ended the server", WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) exit(1);
}

static void run_pair(struct options* options) {
  const pid_t client = getpid();
  int ends[2];
  char byte = 0;
  ssize_t got;
  if (pipe(ends) != 0) fail("pipe: %s", strerror(errno));
  fflush(stdout);
  /* Fork before the first DAT call: a provider's open objects do not survive a fork. */
  const pid_t server = fork();
  if (server < 0) fail("fork: %s", strerror(errno));
  if (server == 0) {
    close(ends[0]);
    be_server(options, ends[1], client);
  }
  close(ends[1]);
  /* The server says that it listens, or ends. */
  while ((got = read(ends[0], &byte, 1)) < 0 && errno == EINTR) {
  }
  close(ends[0]);
  if (got == 1) run_client(options);
  await_server(server);
  if (got != 1) fail("the server ended before it listened");
}

static const char kUsage[] =
    "usage: dapple-demo server [options]\n"
    "       dapple-demo client [options] ADDRESS\n"
    "       dapple-demo pair [options]            both, on this machine\n"
    "\n"
    "  --ia NAME        the interface adapter to open, a name of dat.conf (default: the first that opens)\n"
    "  --port N         the connection qualifier, 1 to 65535 (default: 18420)\n"
    "  --max-size N     the largest size to transfer, in bytes (default: 16777216)\n"
    "  --timeout N      the time to wait for the peer, in seconds (default: 60)\n";

static _Noreturn void fail_usage(const char* what) {
  fprintf(stderr, "dapple-demo: %s\n%s", what, kUsage);
  exit(2);
}

static uint64_t number(const char* text, const char* option, uint64_t largest) {
  char* end = NULL;
  errno = 0;
  const unsigned long long value = strtoull(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < 1 || value > largest) {
    fail("--%s %s: a number from 1 to %" PRIu64 " is needed", option, text, largest);
  }
  return value;
}

static struct options read_options(int argc, char** argv) {
  static const struct option kOptions[] = {
      {"ia", required_argument, NULL, 'i'},       {"port", required_argument, NULL, 'p'},
      {"max-size", required_argument, NULL, 's'}, {"timeout", required_argument, NULL, 't'},
      {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
  struct options options = {.port = kDefaultPort, .timeout_s = 60, .largest_size = kLargestSize, .listens_fd = -1};
  for (int option; (option = getopt_long(argc, argv, "h", kOptions, NULL)) != -1;) {
    switch (option) {
      case 'i':
        options.ia_name = optarg;
        break;
      case 'p':
        options.port = (uint16_t)number(optarg, "port", 65535);
        break;
      case 's':
        options.largest_size = number(optarg, "max-size", kLargestSize);
        break;
      case 't':
        options.timeout_s = (unsigned)number(optarg, "timeout", 3600);
        break;
      case 'h':
        fputs(kUsage, stdout);
        exit(0);
      default:
        fail_usage("unknown option");
    }
  }
  return options;
}

int main(int argc, char** argv) {
  struct options options = read_options(argc, argv);
  const char* mode = optind < argc ? argv[optind] : "";
  const int operands = argc - optind - 1;
  if (strcmp(mode, "server") == 0 && operands == 0) {
    role = "dapple-demo server";
    run_server(&options);
    puts("the client's ranges were all as they should be");
  } else if (strcmp(mode, "client") == 0 && operands == 1) {
    role = "dapple-demo client";
    options.server = argv[optind + 1];
    run_client(&options);
  } else if (strcmp(mode, "pair") == 0 && operands == 0) {
    run_pair(&options);
  } else {
    fail_usage("say server, client ADDRESS or pair");
  }
  return fflush(stdout) == 0 ? 0 : 1;
}
