/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "tests/softroce/api/api.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void say_status(const char* word, DAT_RETURN status) {
  const char* major = "?";
  const char* minor = "?";
  dat_strerror(status, &major, &minor);
  print_error("  %s 0x%08x %s %s\n", word, status, major, minor);
}

void check_status(DAT_RETURN found, DAT_RETURN expected, const char* what, const char* file, int line) {
  if (found == expected) return;
  print_error("%s\n", what);
  say_status("is", found);
  say_status("not", expected);
  _fail(file, line);
}

void check_class(DAT_RETURN found, DAT_RETURN expected, const char* what, const char* file, int line) {
  check_status(found & ~(DAT_RETURN)0xffff, expected, what, file, line);
}

bool on_iwarp(void) {
  const char* device = getenv("SOFTROCE_DEVICE");
  return device && strncmp(device, "siw", 3) == 0;
}

bool on_software_device(void) {
  const char* device = getenv("SOFTROCE_DEVICE");
  return device && strncmp(device, "dapple", 6) == 0;
}

void open_ia(struct fixture* f, const char* name) {
  memset(f, 0, sizeof *f);
  assert_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)name, 8, &f->async, &f->ia));
  assert_ok(dat_ia_query(f->ia, NULL, DAT_IA_FIELD_ALL, &f->attr, DAT_PROVIDER_FIELD_ALL, &f->provider));
  assert_ok(dat_pz_create(f->ia, &f->pz));
}

void register_memory(struct fixture* f) {
  DAT_REGION_DESCRIPTION region;
  f->memory = mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(f->memory != MAP_FAILED);
  region.for_va = f->memory;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY_SIZE, f->pz, DAT_MEM_PRIV_ALL_FLAG,
                           DAT_VA_TYPE_VA, &f->lmr, &f->lmr_context, &f->rmr_context, NULL, NULL));
}

int set_up_named_ia(void** state, const char* name) {
  struct fixture* f = malloc(sizeof *f);
  open_ia(f, name);
  register_memory(f);
  *state = f;
  return 0;
}

int set_up_ia(void** state) {
  return set_up_named_ia(state, IA_NAME);
}

int set_up_ends(void** state) {
  struct fixture* f;
  set_up_ia(state);
  f = *state;
  make_end(f, &f->active, NULL);
  make_end(f, &f->passive, NULL);
  listen_any(f);
  return 0;
}

int set_up_connected(void** state) {
  set_up_ends(state);
  connect_ends(*state);
  return 0;
}

int tear_down(void** state) {
  struct fixture* f = *state;
  if (f->ia) assert_ok(dat_ia_close(f->ia, DAT_CLOSE_ABRUPT_FLAG));
  if (f->memory) munmap(f->memory, MEMORY_SIZE);
  free(f);
  return 0;
}

void make_end(struct fixture* f, struct end* end, const DAT_EP_ATTR* attr) {
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &end->recv));
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &end->request));
  assert_ok(dat_evd_create(f->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &end->connect));
  assert_ok(dat_ep_create(f->ia, f->pz, end->recv, end->request, end->connect, attr, &end->ep));
}

void free_end(struct end* end) {
  assert_ok(dat_ep_free(end->ep));
  assert_ok(dat_evd_free(end->recv));
  assert_ok(dat_evd_free(end->request));
  assert_ok(dat_evd_free(end->connect));
}

void listen_any(struct fixture* f) {
  assert_ok(dat_evd_create(f->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &f->requests));
  assert_ok(dat_psp_create_any(f->ia, &f->port, f->requests, DAT_PSP_CONSUMER_FLAG, &f->psp));
}

void begin_connect(struct fixture* f, struct end* end, const void* data, DAT_COUNT size) {
  assert_ok(dat_ep_connect(end->ep, f->attr.ia_address_ptr, f->port, WAIT_US, size, (void*)(uintptr_t)data,
                           DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

DAT_CR_HANDLE take_request(struct fixture* f) {
  const DAT_EVENT event = expect_event(f->requests, DAT_CONNECTION_REQUEST_EVENT);
  assert_ptr_equal(event.event_data.cr_arrival_event_data.sp_handle.psp_handle, f->psp);
  assert_int_equal(event.event_data.cr_arrival_event_data.conn_qual, f->port);
  return event.event_data.cr_arrival_event_data.cr_handle;
}

void connect_ends(struct fixture* f) {
  begin_connect(f, &f->active, NULL, 0);
  assert_ok(dat_cr_accept(take_request(f), f->passive.ep, 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
}

void disconnect_ends(struct fixture* f, DAT_CLOSE_FLAGS flags) {
  assert_ok(dat_ep_disconnect(f->active.ep, flags));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_DISCONNECTED);
  assert_int_equal(state_of(f->passive.ep), DAT_EP_STATE_DISCONNECTED);
}

void reset_ends(struct fixture* f) {
  assert_ok(dat_ep_reset(f->active.ep));
  assert_ok(dat_ep_reset(f->passive.ep));
  assert_int_equal(state_of(f->active.ep), DAT_EP_STATE_UNCONNECTED);
}

DAT_EVENT expect_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
  DAT_EVENT event;
  DAT_COUNT more = 0;
  memset(&event, 0xa5, sizeof event);
  assert_ok(dat_evd_wait(evd, WAIT_US, 1, &event, &more));
  if (event.event_number != number) print_error("event 0x%x, not 0x%x\n", event.event_number, number);
  assert_int_equal(event.event_number, number);
  assert_ptr_equal(event.evd_handle, evd);
  return event;
}

void expect_end(const struct end* end) {
  DAT_EVENT event;
  DAT_COUNT more;
  assert_ok(dat_evd_wait(end->connect, WAIT_US, 1, &event, &more));
  assert_true(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
              event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
  assert_int_equal(more, 0);
  assert_int_equal(state_of(end->ep), DAT_EP_STATE_DISCONNECTED);
}

static DAT_DTO_COMPLETION_EVENT_DATA next_dto(DAT_EVD_HANDLE evd, uint64_t number, DAT_DTOS operation) {
  const DAT_EVENT event = expect_event(evd, DAT_DTO_COMPLETION_EVENT);
  const DAT_DTO_COMPLETION_EVENT_DATA* data = &event.event_data.dto_completion_event_data;
  assert_int_equal(data->user_cookie.as_64, number);
  ONLY_20(assert_int_equal(data->operation, operation);)
  (void)operation;
  return *data;
}

DAT_DTO_COMPLETION_EVENT_DATA expect_dto(DAT_EVD_HANDLE evd, uint64_t number, DAT_DTOS operation,
                                         DAT_DTO_COMPLETION_STATUS status) {
  const DAT_DTO_COMPLETION_EVENT_DATA data = next_dto(evd, number, operation);
  if (data.status != status) print_error("DTO status %d, not %d\n", (int)data.status, (int)status);
  assert_int_equal(data.status, status);
  return data;
}

void expect_placed(const struct fixture* f) {
  /* These bytes are read into their own place. siw may fail to answer a Read of up to 32 bytes (docs/siw.md). */
  enum { kRead = 64 };
  DAT_LMR_TRIPLET sink = local(f, MEMORY_SIZE - kRead, kRead);
  const DAT_RMR_TRIPLET source = remote(f, MEMORY_SIZE - kRead, kRead);
  if (!on_iwarp()) return;
  assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &sink, cookie(UINT64_MAX), &source, DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(f->active.request, UINT64_MAX, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
}

DAT_DTO_COMPLETION_EVENT_DATA expect_written(const struct fixture* f, uint64_t number) {
  const DAT_DTO_COMPLETION_EVENT_DATA written =
      expect_dto(f->active.request, number, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
  expect_placed(f);
  return written;
}

void expect_sent(DAT_EVD_HANDLE evd, uint64_t number, DAT_DTOS operation) {
  const DAT_DTO_COMPLETION_STATUS status = next_dto(evd, number, operation).status;
  assert_true(status == DAT_DTO_SUCCESS || status == DAT_DTO_ERR_LOCAL_EP);
}

void expect_nothing(DAT_EVD_HANDLE evd) {
  DAT_EVENT event;
  DAT_COUNT more = 77;
  assert_error(dat_evd_wait(evd, SOON_US, 1, &event, &more), DAT_TIMEOUT_EXPIRED, DAT_NO_SUBTYPE);
  assert_int_equal(more, 0);
}

DAT_EP_STATE state_of(DAT_EP_HANDLE ep) {
  DAT_EP_STATE state;
  assert_ok(dat_ep_get_status(ep, &state, NULL, NULL));
  return state;
}

DAT_LMR_TRIPLET local(const struct fixture* f, size_t offset, size_t length) {
  return lmr_triplet((uintptr_t)f->memory + offset, length, f->lmr_context);
}

DAT_RMR_TRIPLET remote(const struct fixture* f, size_t offset, size_t length) {
  return rmr_triplet((uintptr_t)f->memory + offset, length, f->rmr_context);
}

DAT_DTO_COOKIE cookie(uint64_t number) {
  DAT_DTO_COOKIE value;
  value.as_64 = number;
  return value;
}

static unsigned char byte_at(size_t i, unsigned int seed) {
  return (unsigned char)((i * 2654435761U + seed * 40503U) >> 7);
}

void fill(unsigned char* at, size_t size, unsigned int seed) {
  for (size_t i = 0; i < size; ++i) at[i] = byte_at(i, seed);
}

bool needs_sync(void) {
  const char* coherence = getenv("DAPPLE_COHERENCE");
  const char* emulate = getenv("DAPPLE_EMULATE");
  return (coherence && strcmp(coherence, "cpu") == 0) || (emulate && strcmp(emulate, "1") == 0);
}

void sync_for_read(const struct fixture* f, size_t offset, size_t length) {
  const DAT_LMR_TRIPLET segment = local(f, offset, length);
  assert_ok(dat_lmr_sync_rdma_read(f->ia, &segment, 1));
}

void sync_for_write(const struct fixture* f, size_t offset, size_t length) {
  const DAT_LMR_TRIPLET segment = local(f, offset, length);
  assert_ok(dat_lmr_sync_rdma_write(f->ia, &segment, 1));
}

bool is_filled(const unsigned char* at, size_t size, unsigned int seed) {
  for (size_t i = 0; i < size; ++i) {
    if (at[i] != byte_at(i, seed)) return false;
  }
  return true;
}

bool is_all(const unsigned char* at, size_t size, unsigned char value) {
  for (size_t i = 0; i < size; ++i) {
    if (at[i] != value) return false;
  }
  return true;
}
