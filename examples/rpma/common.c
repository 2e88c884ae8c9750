/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TRIES 100
#define BETWEEN_TRIES_US 100000

static const char* name = "rpma";

int run_example(int argc, char** argv, side_function* server, side_function* client) {
  side_function* side = NULL;
  const char* slash = strrchr(argv[0], '/');
  name = slash ? slash + 1 : argv[0];
  if (argc == 4 && strcmp(argv[1], "server") == 0) side = server;
  if (argc == 4 && strcmp(argv[1], "client") == 0) side = client;
  if (!side) {
    fprintf(stderr, "usage: %s server|client ADDRESS PORT\n", name);
    return 2;
  }
  rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_WARNING);
  side(argv[2], argv[3]);
  printf("%s %s: all as it should be\n", name, argv[1]);
  return 0;
}

void must(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "%s: %s: %s\n", name, what, rpma_err_2str(result));
  exit(1);
}

void check(bool good, const char* what) {
  if (good) return;
  fprintf(stderr, "%s: wrong: %s\n", name, what);
  exit(1);
}

static struct rpma_peer* peer_of(const char* address, enum rpma_util_ibv_context_type type) {
  struct ibv_context* context = NULL;
  struct rpma_peer* peer = NULL;
  must(rpma_utils_get_ibv_context(address, type, &context), address);
  must(rpma_peer_new(context, &peer), "rpma_peer_new");
  return peer;
}

struct rpma_peer* local_peer(const char* address) {
  return peer_of(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
}

struct rpma_peer* remote_peer(const char* address) {
  return peer_of(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
}

unsigned char* new_region(struct rpma_peer* peer, int usage, struct rpma_mr_local** mr) {
  void* memory = mmap(NULL, REGION_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "no memory");
  must(rpma_mr_reg(peer, memory, REGION_SIZE, usage, mr), "rpma_mr_reg");
  return memory;
}

void free_region(unsigned char* memory, struct rpma_mr_local** mr) {
  must(rpma_mr_dereg(mr), "rpma_mr_dereg");
  munmap(memory, REGION_SIZE);
}

static unsigned char byte_at(size_t i, unsigned int seed) {
  return (unsigned char)((i * 131 + i / 251 + seed * 29 + 7) % 255 + 1);
}

void fill(unsigned char* memory, size_t size, unsigned int seed) {
  for (size_t i = 0; i < size; ++i) memory[i] = byte_at(i, seed);
}

void check_filled(const unsigned char* memory, size_t size, unsigned int seed, const char* what) {
  for (size_t i = 0; i < size; ++i) check(memory[i] == byte_at(i, seed), what);
}

void make_offer(const struct rpma_mr_local* mr, bool direct_write_to_pmem, struct offer* out) {
  struct rpma_peer_cfg* cfg = NULL;
  size_t mr_size = 0;
  size_t cfg_size = 0;
  memset(out, 0, sizeof *out);
  must(rpma_peer_cfg_new(&cfg), "rpma_peer_cfg_new");
  must(rpma_peer_cfg_set_direct_write_to_pmem(cfg, direct_write_to_pmem), "rpma_peer_cfg_set_direct_write_to_pmem");
  must(rpma_mr_get_descriptor_size(mr, &mr_size), "rpma_mr_get_descriptor_size");
  must(rpma_peer_cfg_get_descriptor_size(cfg, &cfg_size), "rpma_peer_cfg_get_descriptor_size");
  check(mr_size + cfg_size <= sizeof out->bytes, "descriptors are too large");
  must(rpma_mr_get_descriptor(mr, out->bytes), "rpma_mr_get_descriptor");
  must(rpma_peer_cfg_get_descriptor(cfg, out->bytes + mr_size), "rpma_peer_cfg_get_descriptor");
  out->mr_size = (uint8_t)mr_size;
  out->cfg_size = (uint8_t)cfg_size;
  must(rpma_peer_cfg_delete(&cfg), "rpma_peer_cfg_delete");
}

struct rpma_mr_remote* take_offer(struct rpma_conn* conn) {
  struct rpma_conn_private_data data = {NULL, 0};
  struct rpma_mr_remote* region = NULL;
  struct rpma_peer_cfg* cfg = NULL;
  struct offer offer;
  must(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
  check(data.len >= sizeof offer, "the peer offers nothing");
  memcpy(&offer, data.ptr, sizeof offer);
  check((size_t)offer.mr_size + offer.cfg_size <= sizeof offer.bytes, "the peer's offer is larger than itself");
  must(rpma_mr_remote_from_descriptor(offer.bytes, offer.mr_size, &region), "rpma_mr_remote_from_descriptor");
  must(rpma_peer_cfg_from_descriptor(offer.bytes + offer.mr_size, offer.cfg_size, &cfg),
       "rpma_peer_cfg_from_descriptor");
  must(rpma_conn_apply_remote_peer_cfg(conn, cfg), "rpma_conn_apply_remote_peer_cfg");
  must(rpma_peer_cfg_delete(&cfg), "rpma_peer_cfg_delete");
  return region;
}

void expect_event(struct rpma_conn* conn, enum rpma_conn_event event) {
  enum rpma_conn_event found = RPMA_CONN_UNDEFINED;
  must(rpma_conn_next_event(conn, &found), "rpma_conn_next_event");
  if (found != event) fprintf(stderr, "%s: %s\n", name, rpma_utils_conn_event_2str(found));
  check(found == event, "another event was expected");
}

static int connect_request(struct rpma_conn_req* request, struct first_recv recv, const struct offer* mine,
                           struct rpma_conn** conn) {
  struct offer copy;
  struct rpma_conn_private_data data = {&copy, sizeof copy};
  if (mine) copy = *mine;
  if (recv.mr) must(rpma_conn_req_recv(request, recv.mr, 0, recv.size, recv.mr), "rpma_conn_req_recv");
  return rpma_conn_req_connect(&request, mine ? &data : NULL, conn);
}

struct rpma_conn* accept_next(struct rpma_ep* ep, const struct rpma_conn_cfg* cfg, struct first_recv recv,
                              const struct offer* mine) {
  struct rpma_conn_req* request = NULL;
  struct rpma_conn* conn = NULL;
  must(rpma_ep_next_conn_req(ep, cfg, &request), "rpma_ep_next_conn_req");
  must(connect_request(request, recv, mine, &conn), "rpma_conn_req_connect");
  expect_event(conn, RPMA_CONN_ESTABLISHED);
  return conn;
}

struct rpma_conn* accept_one(struct rpma_peer* peer, const char* address, const char* port,
                             const struct rpma_conn_cfg* cfg, struct first_recv recv, const struct offer* mine) {
  struct rpma_ep* ep = NULL;
  struct rpma_conn* conn = NULL;
  must(rpma_ep_listen(peer, address, port, &ep), "rpma_ep_listen");
  conn = accept_next(ep, cfg, recv, mine);
  must(rpma_ep_shutdown(&ep), "rpma_ep_shutdown");
  return conn;
}

struct rpma_conn* connect_to(struct rpma_peer* peer, const char* address, const char* port,
                             const struct rpma_conn_cfg* cfg, struct first_recv recv, const struct offer* mine) {
  for (int tried = 0; tried < TRIES; ++tried) {
    struct rpma_conn_req* request = NULL;
    struct rpma_conn* conn = NULL;
    enum rpma_conn_event event = RPMA_CONN_REJECTED;
    must(rpma_conn_req_new(peer, address, port, cfg, &request), "rpma_conn_req_new");
    /* If nobody listens, an event reports it; over iWARP within one machine the call itself fails. */
    if (connect_request(request, recv, mine, &conn) == 0)
      must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
    if (event == RPMA_CONN_ESTABLISHED) return conn;
    check(event == RPMA_CONN_REJECTED, rpma_utils_conn_event_2str(event));
    must(rpma_conn_delete(&conn), "rpma_conn_delete");
    usleep(BETWEEN_TRIES_US);
  }
  check(false, "nobody listens there");
  return NULL;
}

struct rpma_cq* cq_of(const struct rpma_conn* conn) {
  struct rpma_cq* cq = NULL;
  must(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
  return cq;
}

bool take_completion(struct rpma_cq* cq, struct ibv_wc* wc) {
  const int result = rpma_cq_get_wc(cq, 1, wc, NULL);
  if (result == RPMA_E_NO_COMPLETION) return false;
  must(result, "rpma_cq_get_wc");
  if (wc->status != IBV_WC_SUCCESS) fprintf(stderr, "%s: %s\n", name, ibv_wc_status_str(wc->status));
  check(wc->status == IBV_WC_SUCCESS, "a request failed");
  return true;
}

struct ibv_wc complete(struct rpma_cq* cq, const void* op_context) {
  struct ibv_wc wc;
  while (!take_completion(cq, &wc)) must(rpma_cq_wait(cq), "rpma_cq_wait");
  check(wc.wr_id == (uintptr_t)op_context, "a completion of something else");
  return wc;
}

void hang_up(struct rpma_conn** conn) {
  must(rpma_conn_disconnect(*conn), "rpma_conn_disconnect");
  expect_event(*conn, RPMA_CONN_CLOSED);
  must(rpma_conn_delete(conn), "rpma_conn_delete");
}

void wait_hang_up(struct rpma_conn** conn) {
  expect_event(*conn, RPMA_CONN_CLOSED);
  must(rpma_conn_disconnect(*conn), "rpma_conn_disconnect");
  must(rpma_conn_delete(conn), "rpma_conn_delete");
}
