/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

/*
 * The common parts of the examples. Each is one program with two sides:
 *
 *   rpma-NAME server ADDRESS PORT      and, at the same time,      rpma-NAME client ADDRESS PORT
 *
 * with the server's address on both. Both sides check the data, print one line and exit with 0 if it was right.
 */
#include <librpma.h>

#define REGION_SIZE 4096 /* bytes of memory that an example moves data in */

/* Each side's private data for connecting: its region and its configuration as a peer. */
struct offer {
  uint8_t mr_size; /* bytes */
  uint8_t cfg_size;
  uint8_t bytes[30]; /* the region's descriptor, then the peer's */
};

typedef void side_function(const char* address, const char* port);

/* Call this from main(). */
int run_example(int argc, char** argv, side_function* server, side_function* client);

/* End the program with a line, unless result is 0 or good is true. */
void must(int result, const char* what);
void check(bool good, const char* what);

/* The peer of the device that has this address, or that reaches it. */
struct rpma_peer* local_peer(const char* address);
struct rpma_peer* remote_peer(const char* address);

/* Allocates and registers REGION_SIZE bytes of zeros. */
unsigned char* new_region(struct rpma_peer* peer, int usage, struct rpma_mr_local** mr);
void free_region(unsigned char* memory, struct rpma_mr_local** mr);

/* Fills memory with a pattern for this seed; checks for that pattern. */
void fill(unsigned char* memory, size_t size, unsigned int seed);
void check_filled(const unsigned char* memory, size_t size, unsigned int seed, const char* what);

void make_offer(const struct rpma_mr_local* mr, bool direct_write_to_pmem, struct offer* out);
/* Makes the peer's region from the connection's private data. */
struct rpma_mr_remote* take_offer(struct rpma_conn* conn);

/* Waits for the event, which must be this one. */
void expect_event(struct rpma_conn* conn, enum rpma_conn_event event);

/* A message whose receive is posted before there is a connection; mr NULL for none. */
struct first_recv {
  struct rpma_mr_local* mr;
  size_t size;
};

/* Accepts one connection on an endpoint of its own, or the next of ep. mine may be NULL. */
struct rpma_conn* accept_one(struct rpma_peer* peer, const char* address, const char* port,
                             const struct rpma_conn_cfg* cfg, struct first_recv recv, const struct offer* mine);
struct rpma_conn* accept_next(struct rpma_ep* ep, const struct rpma_conn_cfg* cfg, struct first_recv recv,
                              const struct offer* mine);
/* Connects; tries again for some seconds while nobody listens. */
struct rpma_conn* connect_to(struct rpma_peer* peer, const char* address, const char* port,
                             const struct rpma_conn_cfg* cfg, struct first_recv recv, const struct offer* mine);

struct rpma_cq* cq_of(const struct rpma_conn* conn);
/* Waits for the next completion, which must be a success with this wr_id. */
struct ibv_wc complete(struct rpma_cq* cq, const void* op_context);
/* Takes a completion without waiting; false if there is none. */
bool take_completion(struct rpma_cq* cq, struct ibv_wc* wc);

/* Disconnects from this side; and after the other side has disconnected. */
void hang_up(struct rpma_conn** conn);
void wait_hang_up(struct rpma_conn** conn);
