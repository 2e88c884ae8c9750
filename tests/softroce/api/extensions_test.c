/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Every operation, flag and attribute of dat_ib_extensions.h. atomics_test.c, dto_test.c and datagrams_test.c test the
 * operations in detail.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softroce/api/datagrams.h"

#define DEFAULT DAT_COMPLETION_DEFAULT_FLAG
#define NOT_IMPLEMENTED (DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED)

/* ---- The extensions that exist ---- */

static const char* named(const DAT_PROVIDER_ATTR* attr, const char* name) {
  for (DAT_COUNT i = 0; i < attr->num_provider_specific_attr; ++i) {
    if (strcmp(attr->provider_specific_attr[i].name, name) == 0) return attr->provider_specific_attr[i].value;
  }
  return NULL;
}

static void expect_named(const DAT_PROVIDER_ATTR* attr, const char* name, const char* value) {
  const char* found = named(attr, name);
  if (!found || strcmp(found, value) != 0) print_error("%s is %s, not %s\n", name, found ? found : "missing", value);
  assert_non_null(found);
  assert_string_equal(found, value);
}

/* The first line of one of the kernel's files. */
static const char* line_of(const char* path) {
  static char line[128];
  FILE* file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  assert_int_equal(fclose(file), 0);
  line[strcspn(line, "\n")] = '\0';
  return line;
}

static void expect_named_attributes(const DAT_PROVIDER_ATTR* attr) {
  expect_named(attr, "DAT_IB_PROVIDER_NAME", "CMA");
  expect_named(attr, "DAT_IB_DEVICE_NAME", getenv("SOFTROCE_DEVICE"));
  expect_named(attr, "DAT_IB_CONNECTIVITY_MODE", "DIRECT");
  expect_named(attr, "DAT_IB_RDMA_READ", "TRUE");
  if (on_software_device()) { /* the kernel has no files for it */
    const char* const guid = named(attr, "DAT_IB_NODE_GUID");
    assert_non_null(guid);
    assert_int_equal(strlen(guid), strlen("0000:0000:0000:0000"));
  } else {
    expect_named(attr, "DAT_IB_NODE_GUID", line_of("/sys/class/infiniband/rxe0/node_guid"));
  }
  expect_named(attr, "DAT_IB_GID", "0000:0000:0000:0000:0000:ffff:0a09:0001");
  expect_named(attr, "DAT_IB_TRANSPORT_MTU", "1024");
  expect_named(attr, "DAT_IB_PORT_STATUS", "ACTIVE");
  expect_named(attr, "DAT_IB_PORT_NUMBER", "1");
  expect_named(attr, "DAT_EXTENSION_INTERFACE", "TRUE");
  expect_named(attr, DAT_IB_ATTR_FETCH_AND_ADD, "TRUE");
  expect_named(attr, DAT_IB_ATTR_CMP_AND_SWAP, "TRUE");
  expect_named(attr, DAT_IB_ATTR_IMMED_DATA, "TRUE");
  expect_named(attr, DAT_IB_ATTR_UD, "TRUE");
  expect_named(attr, DAT_IB_ATTR_COUNTERS, "TRUE");
}

static void ia_query__named_attributes(void** state) {
  const struct fixture* f = *state;
  static const char* const collectives[] = {
      DAT_IB_COLL_SET_CLOCK, DAT_IB_COLL_READ_CLOCK, DAT_IB_COLL_BROADCAST,      DAT_IB_COLL_BARRIER,
      DAT_IB_COLL_SCATTER,   DAT_IB_COLL_SCATTERV,   DAT_IB_COLL_GATHER,         DAT_IB_COLL_GATHERV,
      DAT_IB_COLL_ALLGATHER, DAT_IB_COLL_ALLGATHERV, DAT_IB_COLL_ALLTOALL,       DAT_IB_COLL_ALLTOALLV,
      DAT_IB_COLL_REDUCE,    DAT_IB_COLL_ALLREDUCE,  DAT_IB_COLL_REDUCE_SCATTER, DAT_IB_COLL_SCAN};
  assert_int_equal(f->attr.extension_supported, DAT_EXTENSION_IB);
  assert_int_equal(f->attr.extension_version, DAT_IB_EXTENSION_VERSION);
  expect_named_attributes(&f->provider);
  /* A missing extension is not named. */
  for (size_t i = 0; i < sizeof collectives / sizeof *collectives; ++i) {
    assert_null(named(&f->provider, collectives[i]));
  }
}

static void open_query__without_an_open_ia(void** state) {
  DAT_HANDLE query = DAT_HANDLE_NULL;
  DAT_IA_ATTR ia;
  DAT_PROVIDER_ATTR provider;
  DAT_UINT64 value;
  (void)state;
  /* This process has not opened anything: the call loads the library. */
  assert_ok(dat_ib_open_query((DAT_NAME_PTR)(uintptr_t)IA_NAME, &query, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL,
                              &provider));
  assert_non_null(query);
  assert_int_equal(((struct sockaddr_in*)(void*)ia.ia_address_ptr)->sin_addr.s_addr, htonl(0x0a090001));
  assert_int_equal(ia.extension_version, DAT_IB_EXTENSION_VERSION);
  expect_named_attributes(&provider);
  assert_ok(dat_ib_close_query(query));
  assert_error_type(dat_ib_close_query(query), DAT_INVALID_HANDLE);
  assert_error_type(dat_ib_query_counters(query, 0, &value, 0), DAT_INVALID_HANDLE);
  assert_error_type(dat_ib_open_query((DAT_NAME_PTR)(uintptr_t) "nobody", &query, 0, NULL, 0, NULL),
                    DAT_PROVIDER_NOT_FOUND);
}

static void strerror__spells_the_additions(void** state) {
  const char* message = NULL;
  (void)state;
  assert_ok(dat_strerror_extension(DAT_IB_ERR, &message));
  assert_string_equal(message, "DAT_IB_ERR");
  assert_ok(dat_strerror_extension(DAT_IB_COLLECTIVE_ERR, &message));
  assert_string_equal(message, "DAT_IB_COLLECTIVE_ERR");
  assert_ok(dat_strerror_ext_status(DAT_OP_SUCCESS, &message));
  assert_ok(dat_strerror_ext_status(DAT_IB_OP_ERR, &message));
  assert_string_equal(message, "DAT_IB_OP_ERR");
  assert_ok(dat_strerror_ext_status(DAT_IB_COLL_COMP_ERR, &message));
  assert_string_equal(message, "DAT_IB_COLL_COMP_ERR");
  assert_int_equal(dat_strerror_ext_status((DAT_IB_STATUS)77, &message), DAT_INVALID_PARAMETER);
}

static void evd_create__with_the_extension_flag(void** state) {
  struct fixture* f = *state;
  static const int streams[] = {0, DAT_EVD_DTO_FLAG, DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, DAT_EVD_DEFAULT_FLAG,
                                DAT_EVD_SOFTWARE_FLAG};
  for (size_t i = 0; i < sizeof streams / sizeof *streams; ++i) {
    const DAT_EVD_FLAGS flags = (DAT_EVD_FLAGS)(streams[i] | DAT_IB_EVD_EXTENSION_FLAG);
    DAT_EVD_HANDLE evd;
    DAT_EVD_PARAM param;
    assert_ok(dat_evd_create(f->ia, 4, DAT_HANDLE_NULL, flags, &evd));
    assert_ok(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
    assert_int_equal(param.evd_flags, flags);
    assert_ok(dat_evd_free(evd));
  }
  {
    DAT_EVD_HANDLE evd;
    assert_error(dat_evd_create(f->ia, 4, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)(DAT_IB_EVD_EXTENSION_FLAG << 1), &evd),
                 DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  }
}

/* ---- Operations of connected endpoints, on EVDs made for extensions ---- */

static const DAT_IB_EXTENSION_EVENT_DATA* extension_of(const DAT_EVENT* event) {
  return (const DAT_IB_EXTENSION_EVENT_DATA*)(const void*)event->event_extension_data;
}

static void make_extended_end(struct fixture* f, struct end* end) {
  const DAT_EVD_FLAGS dto = (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_IB_EVD_EXTENSION_FLAG);
  const DAT_EVD_FLAGS connection = (DAT_EVD_FLAGS)(DAT_EVD_CONNECTION_FLAG | DAT_IB_EVD_EXTENSION_FLAG);
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, dto, &end->recv));
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, dto, &end->request));
  assert_ok(dat_evd_create(f->ia, 8, DAT_HANDLE_NULL, connection, &end->connect));
  assert_ok(dat_ep_create(f->ia, f->pz, end->recv, end->request, end->connect, NULL, &end->ep));
}

static void posts__make_extension_events(void** state) {
  struct fixture* f = *state;
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_TRIPLET here = local(f, 0, 8);
  DAT_LMR_TRIPLET into = local(f, HALF, 64);
  DAT_RMR_TRIPLET word;
  DAT_UINT64* old = (DAT_UINT64*)(void*)f->memory;
  DAT_UINT64* target = (DAT_UINT64*)(void*)(f->memory + HALF);
  DAT_EVENT event;
  make_extended_end(f, &f->active);
  make_extended_end(f, &f->passive);
  listen_any(f);
  connect_ends(f);
  region.for_va = target;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 64, f->pz,
                           (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC), DAT_VA_TYPE_VA,
                           &lmr, NULL, &word.rmr_context, NULL, NULL));
  word.virtual_address = (uintptr_t)target;
  word.segment_length = 8;

  *target = 40;
  sync_for_write(f, HALF, 8);
  assert_ok(dat_ib_post_fetch_and_add(f->active.ep, 2, &here, cookie(1), &word, DEFAULT));
  event = expect_event(f->active.request, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
  assert_int_equal(extension_of(&event)->type, DAT_IB_FETCH_AND_ADD);
  assert_int_equal((int)event.event_data.dto_completion_event_data.operation, DAT_IB_DTO_FETCH_ADD);
  assert_int_equal(*old, 40);

  assert_ok(dat_ib_post_cmp_and_swap(f->active.ep, 42, 43, &here, cookie(2), &word, DEFAULT));
  event = expect_event(f->active.request, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
  assert_int_equal(extension_of(&event)->type, DAT_IB_CMP_AND_SWAP);
  assert_int_equal((int)event.event_data.dto_completion_event_data.operation, DAT_IB_DTO_CMP_SWAP);
  sync_for_write(f, HALF, 8);
  assert_int_equal(*target, 43);

  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &into, cookie(3), DEFAULT));
  assert_ok(dat_ib_post_rdma_write_immed(f->active.ep, 1, &here, cookie(4), &word, 0x12345678, DEFAULT));
  event = expect_event(f->active.request, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
  assert_int_equal(extension_of(&event)->type, DAT_IB_RDMA_WRITE_IMMED);
  assert_int_equal((int)event.event_data.dto_completion_event_data.operation, DAT_IB_DTO_RDMA_WRITE_IMMED);
  event = expect_event(f->passive.recv, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
  assert_int_equal(extension_of(&event)->type, DAT_IB_RDMA_WRITE_IMMED_DATA);
  assert_int_equal(extension_of(&event)->val.immed.data, 0x12345678);
  assert_int_equal((int)event.event_data.dto_completion_event_data.operation, DAT_IB_DTO_RECV_IMMED);
}

static void datagrams__all_their_operations(void** state) {
  struct fixture* f = *state;
  struct ud_pair pair = resolve_ud(f, &f->active, &f->passive);
  DAT_LMR_TRIPLET from = local(f, 0, 16);
  DAT_LMR_TRIPLET into = local(f, HALF, 64);
  struct ud_event event;
  assert_ok(dat_ib_post_recv_ud(f->passive.ep, 1, &into, cookie(1), DEFAULT));
  assert_ok(dat_ib_post_send_ud(f->active.ep, 1, &from, &pair.to_passive, cookie(2), DEFAULT));
  expect_ud_dto(f->active.request, 2, DAT_IB_DTO_SEND_UD, DAT_DTO_SUCCESS);
  expect_ud_dto(f->passive.recv, 1, DAT_IB_DTO_RECV_UD, DAT_DTO_SUCCESS);
  assert_ok(dat_ib_ud_cm_free(f->active.ep, pair.active_cm));
  assert_ok(dat_ib_ud_cm_free(f->passive.ep, pair.passive_cm));
  assert_ok(dat_ib_ud_ah_free(f->active.ep, &pair.to_passive));
  assert_ok(dat_ib_ud_ah_free(f->passive.ep, &pair.to_active));
  begin_connect(f, &f->active, NULL, 0);
  assert_ok(dat_cr_reject(take_ud_request(f), 0, NULL));
  expect_ud(f->active.connect, DAT_IB_UD_CONNECTION_REJECT_EVENT, DAT_IB_UD_CONNECT_REJECT, &event);
}

/* ---- Counters ---- */

static void counters__of_requests(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET from = local(f, 0, 8);
  DAT_LMR_TRIPLET into = local(f, HALF, 8);
  DAT_RMR_TRIPLET there = remote(f, HALF, 8);
  DAT_UINT64 all[DCNT_EP_ALL_COUNTERS];
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &into, cookie(1), DEFAULT));
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &into, cookie(1), DEFAULT));
  assert_ok(dat_ep_post_send(f->active.ep, 1, &from, cookie(1), DEFAULT));
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &from, cookie(1), &there, DEFAULT));
  assert_ok(dat_ib_post_rdma_write_immed(f->active.ep, 1, &from, cookie(1), &there, 1, DEFAULT));
  assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &from, cookie(1), &there, DEFAULT));
  expect_event(f->passive.recv, DAT_DTO_COMPLETION_EVENT);
  expect_event(f->passive.recv, (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT);
  /* The peer refuses the request, but the counter counts every posted one. */
  assert_ok(dat_ib_post_cmp_and_swap(f->active.ep, 1, 2, &from, cookie(1), &there, DEFAULT));
  assert_ok(dat_ib_post_fetch_and_add(f->active.ep, 1, &from, cookie(1), &there, DEFAULT));
  assert_ok(dat_query_counters(f->active.ep, DCNT_EP_ALL_COUNTERS, all, 0));
  static const struct {
    int number;
    uint64_t value;
  } expected[] = {{DCNT_EP_CONNECT, 1},         {DCNT_EP_POST_SEND, 1},
                  {DCNT_EP_POST_SEND_DATA, 8},  {DCNT_EP_POST_WRITE, 1},
                  {DCNT_EP_POST_WRITE_DATA, 8}, {DCNT_EP_POST_WRITE_IMM, 1},
                  {DCNT_EP_POST_READ, 1},       {DCNT_EP_POST_WRITE_IMM_DATA, 8},
                  {DCNT_EP_POST_READ_DATA, 8},  {DCNT_EP_POST_CMP_SWAP, 1},
                  {DCNT_EP_POST_FETCH_ADD, 1},  {DCNT_EP_POST_SEND_UD, 0},
                  {DCNT_EP_POST_RECV, 0},       {DCNT_EP_RECV, 0}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i) {
    assert_int_equal(all[expected[i].number], expected[i].value);
    assert_int_equal(counter(f->active.ep, expected[i].number), expected[i].value);
  }
  assert_int_equal(counter(f->passive.ep, DCNT_EP_POST_RECV), 2);
  assert_int_equal(counter(f->passive.ep, DCNT_EP_RECV), 1);
  assert_int_equal(counter(f->passive.ep, DCNT_EP_RECV_DATA), 8);
  assert_int_equal(counter(f->passive.ep, DCNT_EP_RECV_RDMA_IMM), 1);
  assert_int_equal(counter(f->passive.ep, DCNT_EP_RECV_RDMA_IMM_DATA), 8);
  assert_int_equal(counter(f->ia, DCNT_IA_SRQ_CREATE), 0);
}

static void counters__of_an_evd(void** state) {
  struct fixture* f = *state;
  DAT_EVENT event;
  DAT_EVENT software;
  DAT_EVD_HANDLE evd;
  DAT_COUNT more;
  assert_ok(dat_evd_create(f->ia, 8, DAT_HANDLE_NULL, (DAT_EVD_FLAGS)(DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG), &evd));
  memset(&software, 0, sizeof software);
  software.event_number = DAT_SOFTWARE_EVENT;
  assert_ok(dat_evd_post_se(evd, &software));
  assert_ok(dat_evd_post_se(evd, &software));
  assert_ok(dat_evd_dequeue(evd, &event));
  assert_ok(dat_evd_wait(evd, 0, 1, &event, &more));
  assert_error_type(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
  assert_error_type(dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY);
  assert_error_type(dat_evd_wait(evd, 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
  assert_int_equal(counter(evd, DCNT_EVD_DEQUEUE), 3);
  assert_int_equal(counter(evd, DCNT_EVD_DEQUEUE_FOUND), 1);
  assert_int_equal(counter(evd, DCNT_EVD_DEQUEUE_NOT_FOUND), 2);
  assert_int_equal(counter(evd, DCNT_EVD_WAIT), 2);
  assert_int_equal(counter(evd, DCNT_EVD_WAIT_BLOCKED), 1);
  assert_int_equal(counter(evd, DCNT_EVD_WAIT_NOTIFY), 0);
  assert_true(counter(evd, DCNT_EVD_DEQUEUE_POLL) >= 2);
  assert_int_equal(counter(evd, DCNT_EVD_DEQUEUE_POLL_FOUND), 0);
  /* The fixture's connection is up: one ESTABLISHED. */
  assert_int_equal(counter(f->active.connect, DCNT_EVD_CONN_CALLBACK), 1);
  {
    DAT_UINT64 all[DCNT_EVD_ALL_COUNTERS];
    assert_ok(dat_query_counters(evd, DCNT_EVD_ALL_COUNTERS, all, 1));
    assert_int_equal(all[DCNT_EVD_DEQUEUE], 3);
    assert_ok(dat_query_counters(evd, DCNT_EVD_ALL_COUNTERS, all, 0));
    for (size_t i = 0; i < DCNT_EVD_ALL_COUNTERS; ++i) assert_int_equal(all[i], 0);
  }
}

static void counters__of_objects(void** state) {
  struct fixture* f = *state;
  static const struct {
    int made, gone;
  } pairs[] = {{DCNT_IA_PZ_CREATE, DCNT_IA_PZ_FREE},   {DCNT_IA_LMR_CREATE, DCNT_IA_LMR_FREE},
               {DCNT_IA_RMR_CREATE, DCNT_IA_RMR_FREE}, {DCNT_IA_SRQ_CREATE, DCNT_IA_SRQ_FREE},
               {DCNT_IA_EVD_CREATE, DCNT_IA_EVD_FREE}, {DCNT_IA_EP_CREATE, DCNT_IA_EP_FREE}};
  const DAT_SRQ_ATTR wanted = {.max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT};
  uint64_t before[sizeof pairs / sizeof *pairs];
  DAT_REGION_DESCRIPTION region;
  DAT_PZ_HANDLE pz;
  DAT_LMR_HANDLE lmr;
  DAT_RMR_HANDLE rmr;
  DAT_SRQ_HANDLE srq;
  struct end end;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) before[i] = counter(f->ia, pairs[i].made);
  assert_ok(dat_pz_create(f->ia, &pz));
  region.for_va = f->memory;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 64, f->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr,
                           NULL, NULL, NULL, NULL));
  assert_ok(dat_rmr_create(f->pz, &rmr));
  assert_ok(dat_srq_create(f->ia, f->pz, (DAT_SRQ_ATTR*)(uintptr_t)&wanted, &srq));
  make_end(f, &end, NULL);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    assert_true(counter(f->ia, pairs[i].made) > before[i]);
    assert_int_equal(counter(f->ia, pairs[i].gone), 0);
  }
  free_end(&end);
  assert_ok(dat_srq_free(srq));
  assert_ok(dat_rmr_free(rmr));
  assert_ok(dat_lmr_free(lmr));
  assert_ok(dat_pz_free(pz));
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    assert_int_equal(counter(f->ia, pairs[i].made) - before[i], counter(f->ia, pairs[i].gone));
  }
}

/* Reads during the traffic; a counter never decreases. */
struct reader {
  DAT_EP_HANDLE ep;
  atomic_bool stop;
  bool went_back;
  uint64_t reads;
};

static void* read_counters(void* argument) {
  struct reader* r = argument;
  uint64_t last = 0;
  while (!atomic_load(&r->stop)) {
    DAT_UINT64 value = 0;
    if (dat_query_counters(r->ep, DCNT_EP_POST_WRITE, &value, 0) != DAT_SUCCESS || value < last) r->went_back = true;
    last = value;
    ++r->reads;
  }
  return NULL;
}

static void counters__are_read_beside_traffic(void** state) {
  struct fixture* f = *state;
  enum { kWrites = 3000 };
  DAT_LMR_TRIPLET from = local(f, 0, 8);
  DAT_RMR_TRIPLET there = remote(f, HALF, 8);
  struct reader r = {.ep = f->active.ep};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, read_counters, &r), 0);
  for (uint64_t i = 0; i < kWrites; ++i) {
    assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &from, cookie(i), &there, DEFAULT));
    expect_dto(f->active.request, i, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
  }
  atomic_store(&r.stop, true);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_false(r.went_back);
  assert_true(r.reads > 0);
  assert_int_equal(counter(f->active.ep, DCNT_EP_POST_WRITE), kWrites);
  assert_int_equal(counter(f->active.ep, DCNT_EP_POST_WRITE_DATA), kWrites * 8);
}

static void print_counters__writes_what_is_not_0(void** state) {
  struct fixture* f = *state;
  char text[4096];
  FILE* file = tmpfile();
  const int out = dup(STDOUT_FILENO);
  size_t size;
  assert_non_null(file);
  assert_int_equal(fflush(stdout), 0);
  assert_true(dup2(fileno(file), STDOUT_FILENO) >= 0);
  const DAT_RETURN all = dat_print_counters(f->active.ep, DCNT_EP_ALL_COUNTERS, 0);
  const DAT_RETURN one = dat_ib_print_counters(f->active.connect, DCNT_EVD_DEQUEUE, 1);
  fflush(stdout);
  dup2(out, STDOUT_FILENO);
  close(out);
  rewind(file);
  size = fread(text, 1, sizeof text - 1, file);
  text[size] = '\0';
  fclose(file);
  assert_ok(all);
  assert_ok(one);
  assert_string_equal(text, "DCNT_EP_CONNECT: 1\nDCNT_EVD_DEQUEUE: 0\n");
}

static void connect_and_disconnect(struct fixture* f) {
  connect_ends(f);
  assert_ok(dat_ep_disconnect(f->active.ep, DAT_CLOSE_ABRUPT_FLAG));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  assert_ok(dat_ep_reset(f->active.ep));
  assert_ok(dat_ep_reset(f->passive.ep));
}

static void counters__of_the_port_start_and_stop(void** state) {
  struct fixture* f = *state;
  uint64_t stopped;
  if (on_software_device()) { /* the kernel counts for its own devices */
    skip();
  }
  connect_and_disconnect(f);
  assert_int_equal(counter(f->ia, DCNT_IA_CM_DREP_TX), 0); /* nobody has asked */
  assert_ok(dat_ib_start_counter(f->ia, DCNT_IA_CM));
  assert_int_equal(counter(f->ia, DCNT_IA_CM_DREP_TX), 0);
  connect_and_disconnect(f);
  connect_and_disconnect(f);
  assert_true(counter(f->ia, DCNT_IA_CM_DREP_TX) >= 2);
  assert_ok(dat_ib_stop_counter(f->ia, DCNT_IA_CM));
  stopped = counter(f->ia, DCNT_IA_CM_DREP_TX);
  assert_true(stopped >= 2);
  connect_and_disconnect(f);
  assert_int_equal(counter(f->ia, DCNT_IA_CM_DREP_TX), stopped);
  assert_ok(dat_ib_stop_counter(f->ia, DCNT_IA_CM)); /* is stopped already */
  assert_int_equal(counter(f->ia, DCNT_IA_CM_DREP_TX), stopped);
  assert_ok(dat_ib_start_counter(f->ia, DCNT_IA_CM));
  assert_int_equal(counter(f->ia, DCNT_IA_CM_DREP_TX), 0);
  connect_and_disconnect(f);
  {
    DAT_UINT64 value = 0;
    assert_ok(dat_query_counters(f->ia, DCNT_IA_CM_DREP_TX, &value, 1));
    assert_true(value >= 1);
    assert_int_equal(counter(f->ia, DCNT_IA_CM_DREP_TX), 0);
  }
  for (int group = DCNT_IA_LNK; group <= DCNT_IA_DIAG; ++group) {
    assert_ok(dat_ib_start_counter(f->ia, group));
    assert_ok(dat_ib_stop_counter(f->ia, group));
  }
}

static void counters__bad_arguments(void** state) {
  struct fixture* f = *state;
  DAT_UINT64 value;
  const struct {
    DAT_HANDLE handle;
    int count;
  } objects[] = {
      {f->ia, DCNT_IA_ALL_COUNTERS}, {f->active.ep, DCNT_EP_ALL_COUNTERS}, {f->active.recv, DCNT_EVD_ALL_COUNTERS}};
  for (size_t i = 0; i < sizeof objects / sizeof *objects; ++i) {
    assert_error(dat_ib_query_counters(objects[i].handle, objects[i].count + 1, &value, 0), DAT_INVALID_PARAMETER,
                 DAT_INVALID_ARG2);
    assert_error(dat_ib_query_counters(objects[i].handle, -1, &value, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    assert_error(dat_ib_query_counters(objects[i].handle, 0, NULL, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    assert_error(dat_ib_print_counters(objects[i].handle, -1, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  }
  assert_error(dat_ib_start_counter(f->ia, 3), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_ib_stop_counter(f->ia, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  assert_error(dat_ib_start_counter(f->active.ep, DCNT_IA_CM), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  assert_error(dat_ib_stop_counter(f->active.ep, DCNT_IA_CM), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  assert_error_type(dat_ib_print_counters(f->psp, 0, 0), DAT_INVALID_HANDLE);
}

/* ---- Missing and unknown operations ---- */

static void collectives__each_by_its_number(void** state) {
  const struct fixture* f = *state;
  static const DAT_IB_OP numbers[] = {
      DAT_IB_COLLECTIVE_CREATE_MEMBER_OP, DAT_IB_COLLECTIVE_FREE_MEMBER_OP,    DAT_IB_COLLECTIVE_CREATE_GROUP_OP,
      DAT_IB_COLLECTIVE_FREE_GROUP_OP,    DAT_IB_COLLECTIVE_SET_CLOCK_OP,      DAT_IB_COLLECTIVE_READ_CLOCK_OP,
      DAT_IB_COLLECTIVE_SCATTER_OP,       DAT_IB_COLLECTIVE_SCATTERV_OP,       DAT_IB_COLLECTIVE_GATHER_OP,
      DAT_IB_COLLECTIVE_GATHERV_OP,       DAT_IB_COLLECTIVE_ALLGATHER_OP,      DAT_IB_COLLECTIVE_ALLGATHERV_OP,
      DAT_IB_COLLECTIVE_ALLTOALL_OP,      DAT_IB_COLLECTIVE_ALLTOALLV_OP,      DAT_IB_COLLECTIVE_REDUCE_OP,
      DAT_IB_COLLECTIVE_ALLREDUCE_OP,     DAT_IB_COLLECTIVE_REDUCE_SCATTER_OP, DAT_IB_COLLECTIVE_SCAN_OP,
      DAT_IB_COLLECTIVE_BROADCAST_OP,     DAT_IB_COLLECTIVE_BARRIER_OP};
  const DAT_HANDLE handles[] = {f->ia, f->active.ep, f->active.recv};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    for (size_t k = 0; k < sizeof handles / sizeof *handles; ++k) {
      check_status(dat_extension_op(handles[k], (DAT_EXTENDED_OP)numbers[i]), NOT_IMPLEMENTED, "a collective", __FILE__,
                   (int)numbers[i]);
    }
    assert_error_type(dat_extension_op(DAT_HANDLE_NULL, (DAT_EXTENDED_OP)numbers[i]), DAT_INVALID_HANDLE);
  }
}

static void collectives__each_by_its_macro(void** state) {
  const struct fixture* f = *state;
  DAT_IB_COLLECTIVE_HANDLE group = f->active.recv;
  DAT_IB_COLLECTIVE_MEMBER member = NULL;
  DAT_IB_COLLECTIVE_GROUP info;
  DAT_CONTEXT context;
  DAT_UINT32 size = 0;
  DAT_UINT64 clock = 0;
  DAT_COUNT sizes[1] = {8};
  void* a = f->memory;
  void* b = f->memory + HALF;
  memset(&info, 0, sizeof info);
  context.as_64 = 0;
#define NONE(call) assert_error(call, DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE)
#define MAX DAT_IB_COLLECTIVE_REDUCE_OP_MAX
#define INT8 DAT_IB_COLLECTIVE_TYPE_INT8
  NONE(dat_ib_collective_create_member(f->ia, NULL, &member, &size));
  NONE(dat_ib_collective_free_member(f->ia, member));
  NONE(dat_ib_collective_create_group(&member, 1, 0, 0, &info, group, f->pz, context));
  NONE(dat_ib_collective_free_group(group));
  NONE(dat_ib_collective_set_clock(group, clock, context));
  NONE(dat_ib_collective_read_clock(group, &clock));
  NONE(dat_ib_collective_scatter(group, a, 8, b, 8, 0, context, DEFAULT));
  NONE(dat_ib_collective_scatterv(group, a, sizes, sizes, b, 8, 0, context, DEFAULT));
  NONE(dat_ib_collective_gather(group, a, 8, b, 8, 0, context, DEFAULT));
  NONE(dat_ib_collective_gatherv(group, a, 8, b, sizes, sizes, 0, context, DEFAULT));
  NONE(dat_ib_collective_allgather(group, a, 8, b, 8, context, DEFAULT));
  NONE(dat_ib_collective_allgatherv(group, a, 8, b, sizes, sizes, context, DEFAULT));
  NONE(dat_ib_collective_alltoall(group, a, 8, b, 8, context, DEFAULT));
  NONE(dat_ib_collective_alltoallv(group, a, sizes, sizes, b, sizes, sizes, context, DEFAULT));
  NONE(dat_ib_collective_reduce(group, a, 8, b, 8, MAX, INT8, 0, context, DEFAULT));
  NONE(dat_ib_collective_allreduce(group, a, 8, b, 8, MAX, INT8, context, DEFAULT));
  NONE(dat_ib_collective_reduce_scatter(group, a, 8, b, sizes, MAX, INT8, context, DEFAULT));
  NONE(dat_ib_collective_scan(group, a, 8, b, 8, MAX, INT8, context, DEFAULT));
  NONE(dat_ib_collective_broadcast(group, a, 8, 0, context, DEFAULT));
  NONE(dat_ib_collective_barrier(group, context, DEFAULT));
#undef NONE
#undef MAX
#undef INT8
}

static void extension_op__nobody_knows_it(void** state) {
  const struct fixture* f = *state;
  for (int op = DAT_IB_UD_AH_FREE_OP + 1; op < DAT_IB_UD_AH_FREE_OP + 200; ++op) {
    assert_error(dat_extension_op(f->active.ep, (DAT_EXTENDED_OP)op), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
    assert_error(dat_extension_op(f->ia, (DAT_EXTENDED_OP)op), DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
  }
  assert_error(dat_extension_op(f->ia, (DAT_EXTENDED_OP)(DAT_OPEN_EXTENSION_BASE - 1)), DAT_NOT_IMPLEMENTED,
               DAT_NO_SUBTYPE);
  /* These two operations find the provider by a name and by an IA's table. */
  assert_error(dat_extension_op(DAT_HANDLE_NULL, (DAT_EXTENDED_OP)(DAT_OPEN_EXTENSION_BASE + 1), IA_NAME),
               DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE);
  assert_error(dat_extension_op(f->ia, (DAT_EXTENDED_OP)(DAT_CLOSE_EXTENSION_BASE + 1)), DAT_NOT_IMPLEMENTED,
               DAT_NO_SUBTYPE);
}

/* Every operation except the collectives, whose handle is never checked. */
static void extension_op__bad_handles(void** state) {
  struct fixture* f = *state;
  DAT_LMR_TRIPLET here = local(f, 0, 8);
  DAT_RMR_TRIPLET there = remote(f, HALF, 8);
  DAT_IB_ADDR_HANDLE address;
  DAT_CONTEXT context;
  DAT_UINT64 value;
  DAT_PZ_HANDLE freed;
  memset(&address, 0, sizeof address);
  context.as_ptr = NULL;
  assert_ok(dat_pz_create(f->ia, &freed));
  assert_ok(dat_pz_free(freed));
  {
    DAT_HANDLE const bad[] = {DAT_HANDLE_NULL, (DAT_HANDLE)(uintptr_t)300, f->pz, freed, f->lmr};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
      DAT_HANDLE h = bad[i];
#define INVALID(call) assert_error_type(call, DAT_INVALID_HANDLE)
      INVALID(dat_ib_post_fetch_and_add(h, 1, &here, cookie(1), &there, DEFAULT));
      INVALID(dat_ib_post_cmp_and_swap(h, 1, 2, &here, cookie(1), &there, DEFAULT));
      INVALID(dat_ib_post_rdma_write_immed(h, 1, &here, cookie(1), &there, 1, DEFAULT));
      INVALID(dat_ib_post_send_ud(h, 1, &here, &address, cookie(1), DEFAULT));
      INVALID(dat_ib_post_recv_ud(h, 1, &here, cookie(1), DEFAULT));
      INVALID(dat_ib_ud_cm_free(h, context));
      INVALID(dat_ib_ud_ah_free(h, &address));
      INVALID(dat_ib_query_counters(h, 0, &value, 0));
      INVALID(dat_ib_print_counters(h, 0, 0));
      INVALID(dat_ib_start_counter(h, DCNT_IA_CM));
      INVALID(dat_ib_stop_counter(h, DCNT_IA_CM));
      INVALID(dat_ib_close_query(h));
#undef INVALID
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(open_query__without_an_open_ia), /* must be first: no IA is open */
      cmocka_unit_test(strerror__spells_the_additions),
      IA_TEST(ia_query__named_attributes),
      IA_TEST(evd_create__with_the_extension_flag),
      IA_TEST(posts__make_extension_events),
      UD_ENDS_TEST(datagrams__all_their_operations),
      CONNECTED_TEST(counters__of_requests),
      CONNECTED_TEST(counters__of_an_evd),
      IA_TEST(counters__of_objects),
      CONNECTED_TEST(counters__are_read_beside_traffic),
      CONNECTED_TEST(print_counters__writes_what_is_not_0),
      ENDS_TEST(counters__of_the_port_start_and_stop),
      ENDS_TEST(counters__bad_arguments),
      ENDS_TEST(collectives__each_by_its_number),
      ENDS_TEST(collectives__each_by_its_macro),
      ENDS_TEST(extension_op__nobody_knows_it),
      IA_TEST(extension_op__bad_handles),
  };
  return RUN_TESTS(tests);
}
