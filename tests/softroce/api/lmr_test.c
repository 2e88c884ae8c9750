/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* dat_lmr_create, sentence by sentence; the privileges are also enforced on the wire. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/softroce/api/api.h"

#define REMOTE_READ DAT_MEM_PRIV_REMOTE_READ_FLAG
#define REMOTE_WRITE DAT_MEM_PRIV_REMOTE_WRITE_FLAG
#define LOCAL_READ DAT_MEM_PRIV_LOCAL_READ_FLAG
#define LOCAL_WRITE DAT_MEM_PRIV_LOCAL_WRITE_FLAG

struct region {
  DAT_LMR_HANDLE lmr;
  DAT_LMR_CONTEXT lmr_context;
  DAT_RMR_CONTEXT rmr_context;
  DAT_VLEN size;
  DAT_VADDR address;
};

static DAT_RETURN create(struct fixture* f, void* address, DAT_VLEN length, DAT_PZ_HANDLE pz, int privileges,
                         struct region* out) {
  DAT_REGION_DESCRIPTION description;
  description.for_va = address;
  memset(out, 0xa5, sizeof *out);
  return dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, description, length, pz, (DAT_MEM_PRIV_FLAGS)privileges,
                        DAT_VA_TYPE_VA, &out->lmr, &out->lmr_context, &out->rmr_context, &out->size, &out->address);
}

static void lmr_create__says_what_is_registered(void** state) {
  static const size_t ranges[][2] = {{0, 1}, {1, 1}, {100, 5000}, {4095, 2}, {0, MEMORY_SIZE}};
  struct fixture* f = *state;
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; ++i) {
    struct region r;
    unsigned char* start = f->memory + ranges[i][0];
    assert_ok(create(f, start, ranges[i][1], f->pz, DAT_MEM_PRIV_ALL_FLAG, &r));
    /* The registered range contains the requested one. */
    assert_true(r.address <= (uintptr_t)start);
    assert_true(r.address + r.size >= (uintptr_t)start + ranges[i][1]);
    assert_int_not_equal(r.lmr_context, 0);
    assert_ok(dat_lmr_free(r.lmr));
  }
}

static void lmr_create__outputs_may_be_left_out(void** state) {
  struct fixture* f = *state;
  DAT_REGION_DESCRIPTION description;
  DAT_LMR_HANDLE lmr;
  description.for_va = f->memory;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, description, 10, f->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
                           &lmr, NULL, NULL, NULL, NULL));
  assert_ok(dat_lmr_free(lmr));
  assert_error(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, description, 10, f->pz, DAT_MEM_PRIV_ALL_FLAG,
                              DAT_VA_TYPE_VA, NULL, NULL, NULL, NULL, NULL),
               DAT_INVALID_PARAMETER, ONLY_12(DAT_INVALID_ARG7) ONLY_20(DAT_INVALID_ARG8));
}

static void lmr_create__rmr_context_only_with_remote_privileges(void** state) {
  struct fixture* f = *state;
  for (int privileges = 0; privileges < 0x34; ++privileges) {
    struct region r;
    if (privileges & ~DAT_MEM_PRIV_ALL_FLAG) continue;
    assert_ok(create(f, f->memory, 4096, f->pz, privileges, &r));
    if (privileges & (REMOTE_READ | REMOTE_WRITE)) {
      assert_int_not_equal(r.rmr_context, 0);
    } else {
      assert_int_equal(r.rmr_context, 0);
    }
    assert_ok(dat_lmr_free(r.lmr));
  }
}

static void lmr_create__invalid_parameters(void** state) {
  struct fixture* f = *state;
  struct region r;
  DAT_REGION_DESCRIPTION description;
  void* gone = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_error(create(f, f->memory, 0, f->pz, DAT_MEM_PRIV_ALL_FLAG, &r), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
  assert_error(create(f, f->memory, UINT64_MAX, f->pz, DAT_MEM_PRIV_ALL_FLAG, &r), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG4);
  assert_error(create(f, (void*)(UINTPTR_MAX - 10), 100, f->pz, DAT_MEM_PRIV_ALL_FLAG, &r), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG4);
  assert_error(create(f, f->memory, 100, f->pz, 0x80, &r), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
  assert_error(create(f, f->memory, 100, f->pz, 0x1000, &r), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
  munmap(gone, 8192);
  assert_error(create(f, gone, 8192, f->pz, DAT_MEM_PRIV_ALL_FLAG, &r), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error_type(create(f, NULL, 100, f->pz, DAT_MEM_PRIV_ALL_FLAG, &r), DAT_INVALID_PARAMETER);

  description.for_va = f->memory;
  assert_error(dat_lmr_create(f->ia, (DAT_MEM_TYPE)77, description, 10, f->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
                              &r.lmr, NULL, NULL, NULL, NULL),
               DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  ONLY_20(assert_error(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, description, 10, f->pz, DAT_MEM_PRIV_ALL_FLAG,
                                      (DAT_VA_TYPE)77, &r.lmr, NULL, NULL, NULL, NULL),
                       DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);)
}

/* An unsupported feature returns its error, and is not advertised. */
static void lmr_create__memory_mapped_for_reading_only(void** state) {
  struct fixture* f = *state;
  struct region r;
  void* memory = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ok(create(f, memory, 8192, f->pz, LOCAL_READ | REMOTE_READ, &r));
  assert_ok(dat_lmr_free(r.lmr));
  assert_error(create(f, memory, 8192, f->pz, LOCAL_READ | LOCAL_WRITE, &r), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error(create(f, memory, 8192, f->pz, REMOTE_WRITE, &r), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  munmap(memory, 8192);
}

static void lmr_create__over_another_with_other_pz_and_privileges(void** state) {
  struct fixture* f = *state;
  struct region r[2];
  DAT_PZ_HANDLE pz;
  DAT_LMR_TRIPLET source;
  const DAT_RMR_TRIPLET there = remote(f, HALF, 100);
  assert_ok(dat_pz_create(f->ia, &pz));
  assert_ok(create(f, f->memory, 4096, pz, LOCAL_READ, &r[0]));
  assert_ok(create(f, f->memory + 100, 4096, f->pz, LOCAL_READ | REMOTE_READ, &r[1]));
  assert_int_not_equal(r[0].lmr_context, r[1].lmr_context);
  assert_int_not_equal(r[0].lmr_context, f->lmr_context);
  /* Freeing one leaves the others registered: the memory belongs to the consumer. */
  assert_ok(dat_lmr_free(r[0].lmr));
  source = local(f, 200, 100);
  source.lmr_context = r[1].lmr_context;
  fill(f->memory + 200, 100, 1);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(1), &there, DAT_COMPLETION_DEFAULT_FLAG));
  expect_written(f, 1);
  sync_for_write(f, HALF, 100);
  assert_true(is_filled(f->memory + HALF, 100, 1));
}

static void lmr_query__everything(void** state) {
  struct fixture* f = *state;
  struct region r;
  DAT_LMR_PARAM param;
  assert_ok(create(f, f->memory + 5, 4097, f->pz, LOCAL_READ | REMOTE_READ, &r));
  memset(&param, 0xa5, sizeof param);
  assert_ok(dat_lmr_query(r.lmr, DAT_LMR_FIELD_ALL, &param));
  assert_ptr_equal(param.ia_handle, f->ia);
  assert_int_equal(param.mem_type, DAT_MEM_TYPE_VIRTUAL);
  assert_ptr_equal(param.region_desc.for_va, f->memory + 5);
  assert_int_equal(param.length, 4097);
  assert_ptr_equal(param.pz_handle, f->pz);
  assert_int_equal(param.mem_priv, LOCAL_READ | REMOTE_READ);
  ONLY_20(assert_int_equal(param.va_type, DAT_VA_TYPE_VA);)
  assert_int_equal(param.lmr_context, r.lmr_context);
  assert_int_equal(param.rmr_context, r.rmr_context);
  assert_int_equal(param.registered_size, r.size);
  assert_int_equal(param.registered_address, r.address);
  assert_error(dat_lmr_query(r.lmr, DAT_LMR_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  assert_error(dat_lmr_query(r.lmr, (DAT_LMR_PARAM_MASK)0x40000000, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* A peer that exceeds its rights gets an error, and no byte here changes. */
static void expect_refused(struct fixture* f, DAT_RMR_TRIPLET there, bool reads) {
  DAT_LMR_TRIPLET near = local(f, 0, 100);
  memset(f->memory, 0x11, 100);
  memset(f->memory + HALF, 0x22, 100);
  if (reads) {
    assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &near, cookie(1), &there, DAT_COMPLETION_DEFAULT_FLAG));
  } else {
    assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &near, cookie(1), &there, DAT_COMPLETION_DEFAULT_FLAG));
  }
  if (on_iwarp()) {
    /* The side that refuses ends the stream. */
    if (reads) {
      expect_dto(f->active.request, 1, DAT_DTO_RDMA_READ, DAT_DTO_ERR_FLUSHED);
    } else {
      expect_sent(f->active.request, 1, DAT_DTO_RDMA_WRITE);
    }
    expect_end(&f->active);
    expect_end(&f->passive);
  } else {
    expect_dto(f->active.request, 1, reads ? DAT_DTO_RDMA_READ : DAT_DTO_RDMA_WRITE, DAT_DTO_ERR_REMOTE_ACCESS);
    expect_event(f->active.connect, DAT_CONNECTION_EVENT_BROKEN);
  }
  assert_true(is_all(f->memory, 100, 0x11));
  assert_true(is_all(f->memory + HALF, 100, 0x22));
}

/*
 * siw checks the region, its zone and its bounds, but not the right to read: a peer that knows a region's key may read
 * there.
 */
static void expect_no_right_to_read(struct fixture* f, DAT_RMR_TRIPLET there) {
  DAT_LMR_TRIPLET near = local(f, 0, 100);
  if (!on_iwarp()) return expect_refused(f, there, true);
  fill(f->memory + HALF, 100, 3);
  sync_for_read(f, HALF, 100);
  assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &near, cookie(1), &there, DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(f->active.request, 1, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory, 100, 3));
}

static DAT_RMR_TRIPLET window(struct fixture* f, DAT_PZ_HANDLE pz, int privileges, struct region* r) {
  DAT_RMR_TRIPLET there = remote(f, HALF, 100);
  assert_ok(create(f, f->memory + HALF, 100, pz, privileges, r));
  there.rmr_context = r->rmr_context;
  return there;
}

static void privileges__rdma_write_to_what_may_be_read(void** state) {
  struct region r;
  expect_refused(*state, window(*state, ((struct fixture*)*state)->pz, LOCAL_READ | LOCAL_WRITE | REMOTE_READ, &r),
                 false);
}

static void privileges__rdma_read_from_what_may_be_written(void** state) {
  struct region r;
  expect_no_right_to_read(*state, window(*state, ((struct fixture*)*state)->pz, LOCAL_WRITE | REMOTE_WRITE, &r));
}

static void privileges__no_remote_rights_unless_asked_for(void** state) {
  struct region r;
  DAT_RMR_TRIPLET there = window(*state, ((struct fixture*)*state)->pz, LOCAL_READ | LOCAL_WRITE, &r);
  there.rmr_context = r.lmr_context;
  expect_no_right_to_read(*state, there);
}

static void privileges__no_remote_write_unless_asked_for(void** state) {
  struct region r;
  DAT_RMR_TRIPLET there = window(*state, ((struct fixture*)*state)->pz, LOCAL_READ | LOCAL_WRITE, &r);
  there.rmr_context = r.lmr_context;
  expect_refused(*state, there, false);
}

static void expect_freed_lmr_refused(struct fixture* f, bool reading) {
  struct region r;
  const DAT_RMR_TRIPLET there = window(f, f->pz, DAT_MEM_PRIV_ALL_FLAG, &r);
  assert_ok(dat_lmr_free(r.lmr));
  expect_refused(f, there, reading);
}

static void expect_another_zone_refused(struct fixture* f, bool reading) {
  struct region r;
  DAT_PZ_HANDLE pz;
  assert_ok(dat_pz_create(f->ia, &pz));
  expect_refused(f, window(f, pz, DAT_MEM_PRIV_ALL_FLAG, &r), reading);
}

static void privileges__reading_a_freed_lmr(void** state) {
  expect_freed_lmr_refused(*state, true);
}

static void privileges__reading_another_protection_zone(void** state) {
  expect_another_zone_refused(*state, true);
}

static void privileges__a_freed_lmr(void** state) {
  expect_freed_lmr_refused(*state, false);
}

static void privileges__another_protection_zone(void** state) {
  expect_another_zone_refused(*state, false);
}

/* The device checks the local memory, however short the request is. */
static const DAT_VLEN kSizes[] = {8, 64, 1000};

static void expect_local_memory_refused(struct fixture* f, DAT_LMR_CONTEXT context, DAT_VLEN size) {
  DAT_LMR_TRIPLET source = local(f, 0, size);
  const DAT_RMR_TRIPLET there = remote(f, HALF, size);
  DAT_EVENT event;
  source.lmr_context = context;
  memset(f->memory + HALF, 0x22, size);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(1), &there, DAT_COMPLETION_DEFAULT_FLAG));
  event = expect_event(f->active.request, DAT_DTO_COMPLETION_EVENT);
  assert_int_not_equal(event.event_data.dto_completion_event_data.status, DAT_DTO_SUCCESS);
  assert_true(is_all(f->memory + HALF, size, 0x22));
  expect_end(&f->active);
  expect_end(&f->passive);
  reset_ends(f);
  connect_ends(f);
}

static void privileges__local_memory_of_another_protection_zone(void** state) {
  struct fixture* f = *state;
  struct region r;
  DAT_PZ_HANDLE pz;
  assert_ok(dat_pz_create(f->ia, &pz));
  assert_ok(create(f, f->memory, 1000, pz, DAT_MEM_PRIV_ALL_FLAG, &r));
  for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) expect_local_memory_refused(f, r.lmr_context, kSizes[i]);
}

static void privileges__local_memory_of_a_freed_lmr(void** state) {
  struct fixture* f = *state;
  for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) {
    struct region r;
    DAT_LMR_TRIPLET source = local(f, 0, kSizes[i]);
    const DAT_RMR_TRIPLET there = remote(f, HALF, kSizes[i]);
    assert_ok(create(f, f->memory, 1000, f->pz, DAT_MEM_PRIV_ALL_FLAG, &r));
    source.lmr_context = r.lmr_context;
    assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(1), &there, DAT_COMPLETION_DEFAULT_FLAG));
    expect_written(f, 1);
    assert_ok(dat_lmr_free(r.lmr));
    expect_local_memory_refused(f, r.lmr_context, kSizes[i]);
  }
}

enum { kBig = 128 << 20, kBefore = 0, kRegistering = 1, kRegistered = 2, kFreeing = 3, kFreed = 4 };

struct registrar {
  struct fixture* f;
  unsigned char* memory;
  atomic_int stage;
};

static unsigned char* map_big(void) {
  unsigned char* memory = mmap(NULL, kBig, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(memory, MAP_FAILED);
  assert_int_equal(madvise(memory, kBig, MADV_NOHUGEPAGE), 0); /* pinning huge pages takes too little time */
  return memory;
}

static void* register_and_free(void* argument) {
  struct registrar* registrar = argument;
  struct region r;
  registrar->stage = kRegistering;
  const DAT_RETURN status = create(registrar->f, registrar->memory, kBig, registrar->f->pz, DAT_MEM_PRIV_ALL_FLAG, &r);
  registrar->stage = kRegistered;
  if (status != DAT_SUCCESS) return NULL;
  usleep(10000);
  registrar->stage = kFreeing;
  if (dat_lmr_free(r.lmr) == DAT_SUCCESS) registrar->stage = kFreed;
  return NULL;
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The longest time that this thread waited for a zone during that stage, as a fraction of the stage. */
static double longest_wait_during(const struct registrar* registrar, int stage) {
  double longest = 0;
  while (registrar->stage < stage) usleep(100);
  const double begun = now_s();
  while (registrar->stage == stage) {
    DAT_PZ_HANDLE pz;
    const double asked = now_s();
    assert_ok(dat_pz_create(registrar->f->ia, &pz));
    const double waited = now_s() - asked;
    if (waited > longest) longest = waited;
    assert_ok(dat_pz_free(pz));
  }
  return longest / (now_s() - begun);
}

static void lmr_create__others_go_on_meanwhile(void** state) {
  struct fixture* f = *state;
  double registering = 1, freeing = 1;
  for (int i = 0; i < 10 && (registering > 0.5 || freeing > 0.5); ++i) {
    struct registrar registrar = {f, NULL, kBefore};
    pthread_t thread;
    registrar.memory = map_big();
    assert_int_equal(pthread_create(&thread, NULL, register_and_free, &registrar), 0);
    registering = longest_wait_during(&registrar, kRegistering);
    freeing = longest_wait_during(&registrar, kFreeing);
    pthread_join(thread, NULL);
    assert_int_equal(registrar.stage, kFreed);
    munmap(registrar.memory, kBig);
    print_message("a zone took at most %.0f %% of a registration, and %.0f %% of its end\n", registering * 100,
                  freeing * 100);
  }
  assert_true(registering < 0.5);
  /* With one CPU the kernel unpins everything before another thread runs. */
  if (sysconf(_SC_NPROCESSORS_ONLN) > 1) assert_true(freeing < 0.5);
}

static void pz_free__while_memory_is_registered_in_it(void** state) {
  struct fixture* f = *state;
  struct registrar registrar = {f, NULL, kBefore};
  pthread_t thread;
  DAT_RETURN status;
  registrar.memory = map_big();
  assert_int_equal(pthread_create(&thread, NULL, register_and_free, &registrar), 0);
  while (registrar.stage == kBefore) usleep(100);
  status = dat_pz_free(f->pz); /* includes the fixture's memory */
  assert_int_equal(status, DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_PZ_IN_USE);
  pthread_join(thread, NULL);
  assert_int_equal(registrar.stage, kFreed);
  munmap(registrar.memory, kBig);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IA_TEST(lmr_create__says_what_is_registered),
      IA_TEST(lmr_create__outputs_may_be_left_out),
      IA_TEST(lmr_create__rmr_context_only_with_remote_privileges),
      IA_TEST(lmr_create__invalid_parameters),
      IA_TEST(lmr_create__memory_mapped_for_reading_only),
      CONNECTED_TEST(lmr_create__over_another_with_other_pz_and_privileges),
      IA_TEST(lmr_create__others_go_on_meanwhile),
      IA_TEST(pz_free__while_memory_is_registered_in_it),
      IA_TEST(lmr_query__everything),
      CONNECTED_TEST(privileges__rdma_write_to_what_may_be_read),
      CONNECTED_TEST(privileges__rdma_read_from_what_may_be_written),
      CONNECTED_TEST(privileges__no_remote_rights_unless_asked_for),
      CONNECTED_TEST(privileges__no_remote_write_unless_asked_for),
      CONNECTED_TEST(privileges__a_freed_lmr),
      CONNECTED_TEST(privileges__reading_a_freed_lmr),
      CONNECTED_TEST(privileges__reading_another_protection_zone),
      CONNECTED_TEST(privileges__another_protection_zone),
      CONNECTED_TEST(privileges__local_memory_of_another_protection_zone),
      CONNECTED_TEST(privileges__local_memory_of_a_freed_lmr),
  };
  return RUN_TESTS(tests);
}
