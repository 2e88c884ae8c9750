/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_EXAMPLES_RPMA_COMMON_H
#define DAPPLE_EXAMPLES_RPMA_COMMON_H

/*
 * What the examples share. Each is one program with two sides:
 *
 *   rpma-NAME server ADDRESS PORT      and, at the same time,      rpma-NAME client ADDRESS PORT
 *
 * with the server's address on both. Both check what arrives, print one line and end with 0 if it was right.
 */
#include <librpma.h>

#define REGION_SIZE 4096 /* bytes of memory that an example moves data in */

/* What one side tells the other while connecting: its region, and what kind of peer it is. */
struct offer {
  uint8_t mr_size; /* bytes */
  uint8_t cfg_size;
  uint8_t bytes[30]; /* the region's descriptor and after it the peer's */
};

typedef void side_function(const char* address, const char* port);

/* A program's main(). */
int run_example(int argc, char** argv, side_function* server, side_function* client);

/* Ends the program with a line unless result is 0, or good is true. */
void must(int result, const char* what);
void check(bool good, const char* what);

/* Of the device that has this address, or that reaches it. */
struct rpma_peer* local_peer(const char* address);
struct rpma_peer* remote_peer(const char* address);

/* REGION_SIZE bytes, zeros, and their registration. */
unsigned char* new_region(struct rpma_peer* peer, int usage, struct rpma_mr_local** mr);
void free_region(unsigned char* memory, struct rpma_mr_local** mr);

/* Fills memory with what only this seed gives, and looks whether it is that. */
void fill(unsigned char* memory, size_t size, unsigned int seed);
void check_filled(const unsigned char* memory, size_t size, unsigned int seed, const char* what);

void make_offer(const struct rpma_mr_local* mr, bool direct_write_to_pmem, struct offer* out);
/* Takes up the offer in the connection's private data. */
struct rpma_mr_remote* take_offer(struct rpma_conn* conn);

/* Waits for the event, which must be this one. */
void expect_event(struct rpma_conn* conn, enum rpma_conn_event event);

/* A message to post a receive for before there is a connection; mr NULL for none. */
struct first_recv {
  struct rpma_mr_local* mr;
  size_t size;
};

/* Accepts one connection on an endpoint of its own, or the next of ep. mine may be NULL. */
struct rpma_conn* accept_one(struct rpma_peer* peer, const char* address, const char* port,
                             const struct rpma_conn_cfg* cfg, struct first_recv recv, const struct offer* mine);
struct rpma_conn* accept_next(struct rpma_ep* ep, const struct rpma_conn_cfg* cfg, struct first_recv recv,
                              const struct offer* mine);
/* Connects, for some seconds again and again while nobody listens. */
struct rpma_conn* connect_to(struct rpma_peer* peer, const char* address, const char* port,
                             const struct rpma_conn_cfg* cfg, struct first_recv recv, const struct offer* mine);

struct rpma_cq* cq_of(const struct rpma_conn* conn);
/* Waits for the next completion, which must be a success with this wr_id. */
struct ibv_wc complete(struct rpma_cq* cq, const void* op_context);
/* Looks, without waiting: false if there is none. */
bool take_completion(struct rpma_cq* cq, struct ibv_wc* wc);

/* Ends a connection from this side, and after the other side has ended it. */
void hang_up(struct rpma_conn** conn);
void wait_hang_up(struct rpma_conn** conn);

#endif
