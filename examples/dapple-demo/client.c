/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* The active side: it writes into the server's buffer and reads the server's changes back. */
#include "client.h"

#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "events.h"
#include "pattern.h"
#include "protocol.h"
#include "report.h"
#include "table.h"
#include "transfer.h"

/* Powers of four, and sizes close to those of lines, of pages and of the largest request. */
static const uint64_t kSizes[] = {1,    3,    16,    63,    64,    65,     256,     1000,    1024,
                                  4095, 4096, 16384, 65536, 65537, 262144, 1048576, 4194304, 16777216};

/* The starts of ranges: on a line, in the middle of one, on its last byte. */
static const unsigned kOffsets[] = {0, 1, kMaxOffset};

/* A transfer is repeated until it has moved this much, so that small sizes have a rate too. */
enum { kTimedBytes = 65536, kMaxTimes = 32 };

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

struct client {
  struct session session;
  struct mailbox mailbox;
  struct region source; /* what we write from */
  struct region sink;   /* what we read into */
  struct message ready; /* the server's buffer */
};

static void connect_to(struct client* client, const struct client_options* options) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo* found = NULL;
  int error = getaddrinfo(options->server, NULL, &hints, &found);
  if (error != 0) {
    fail("%s: %s; give the address of the server's RDMA device", options->server, gai_strerror(error));
  }
  char greeting[] = DEMO_GREETING;
  /* The provider gives up a little before us, because it can report the reason. */
  must(dat_ep_connect(client->session.ep, found->ai_addr, options->port, options->timeout_s * 900000u, sizeof greeting,
                      greeting, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect", "the address must be one that this machine can route to");
  await_connection(&client->session, options->server);
  freeaddrinfo(found);
}

static unsigned times_for(uint64_t size) {
  uint64_t times = kTimedBytes / size;
  return times < 1 ? 1 : times > kMaxTimes ? kMaxTimes : (unsigned)times;
}

static double timed_transfer(struct client* client, enum direction direction, const struct region* local, size_t offset,
                             uint64_t remote_address, uint64_t size) {
  unsigned times = times_for(size);
  double start = now_s();
  transfer(&client->session, direction, local, offset, remote_address, client->ready.rmr_context, size, times);
  return (double)size * times / 1e6 / (now_s() - start);
}

static void ask_for_the_buffer(struct client* client) {
  struct message next = {.type = kNext};
  send_message(&client->mailbox, &next);
  receive_message(&client->mailbox, kReady, kReady, &client->ready);
}

/* Tests one range: writes it, has it checked and changed, reads it back and checks it. */
static void run_range(struct client* client, unsigned offset, uint64_t seed, struct row* row) {
  size_t local = kGuardBytes + offset;
  struct message written = {
      .type = kWritten, .address = client->ready.address + local, .length = row->size, .seed = seed};
  struct message changed;

  pattern_fill(client->source.memory + local, row->size, seed);
  row->write_mb_s += timed_transfer(client, kRdmaWrite, &client->source, local, written.address, row->size);
  send_message(&client->mailbox, &written);
  receive_message(&client->mailbox, kChanged, kChanged, &changed);

  memset(client->sink.memory + offset, kGuardValue, row->size + 2 * kGuardBytes);
  row->read_mb_s += timed_transfer(client, kRdmaRead, &client->sink, local, written.address, row->size);
  pattern_must_match(client->sink.memory + local, row->size, seed, 1, "after our RDMA Read");
  ask_for_the_buffer(client);
  row->bytes_verified += 2 * row->size;
  row->ranges++;
}

static struct row run_size(struct client* client, uint64_t size) {
  struct row row = {.size = size};
  for (size_t i = 0; i < COUNT(kOffsets); i++) {
    run_range(client, kOffsets[i], size * COUNT(kOffsets) + i, &row);
  }
  row.write_mb_s /= row.ranges;
  row.read_mb_s /= row.ranges;
  return row;
}

static void open_client(struct client* client, const struct client_options* options) {
  uint64_t buffer = 2 * kGuardBytes + kMaxOffset + options->largest_size;
  DAT_MEM_PRIV_FLAGS sink_privileges = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
  session_open(&client->session, options->ia_name, options->timeout_s);
  if (client->session.provider_attr.rdma_write_for_rdma_read_req) {
    sink_privileges |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG; /* on iWARP the peer answers an RDMA Read with a kind of write */
  }
  mailbox_open(&client->mailbox, &client->session);
  region_create(&client->session, &client->source, buffer, DAT_MEM_PRIV_LOCAL_READ_FLAG);
  region_create(&client->session, &client->sink, buffer, sink_privileges);
}

static void close_client(struct client* client) {
  must(dat_ep_disconnect(client->session.ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect", "is the server gone?");
  await_disconnection(&client->session);
  session_free_endpoint(&client->session);
  region_free(&client->sink);
  region_free(&client->source);
  mailbox_close(&client->mailbox);
  session_close(&client->session);
}

void run_client(const struct client_options* options) {
  static struct client client;
  struct message done = {.type = kDone};
  unsigned sizes = 0;
  uint64_t verified = 0;

  open_client(&client, options);
  connect_to(&client, options);
  ask_for_the_buffer(&client);
  if (client.ready.length < 2 * kGuardBytes + kMaxOffset + options->largest_size) {
    fail("the server's buffer has %" PRIu64 " bytes only; use the same --max-size on both sides", client.ready.length);
  }
  table_print_device(&client.session);
  table_print_header();
  for (size_t i = 0; i < COUNT(kSizes) && kSizes[i] <= options->largest_size; i++) {
    struct row row = run_size(&client, kSizes[i]);
    table_print_row(&row);
    verified += row.bytes_verified;
    sizes++;
  }
  send_message(&client.mailbox, &done);
  settle_message(&client.mailbox);
  close_client(&client);
  printf("\n  all %u sizes verified: %" PRIu64 " bytes, every one of them right, and none beside them touched\n", sizes,
         verified);
}
