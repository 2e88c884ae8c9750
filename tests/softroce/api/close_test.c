/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Handles that are none, of another kind, of another IA, or stale; and objects freed in the wrong order.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/softroce/api/api.h"

#define H(number) ((DAT_HANDLE)(uintptr_t)(number))

/* Each function that takes a handle first, with that handle and otherwise good arguments. */
struct call {
  const char* name;
  DAT_RETURN (*make)(struct fixture*, DAT_HANDLE);
};

static DAT_EVENT event;
static DAT_COUNT count;
static DAT_HANDLE made;
static DAT_CONN_QUAL port;
static union {
  DAT_IA_ATTR ia;
  DAT_PROVIDER_ATTR provider;
  DAT_PZ_PARAM pz;
  DAT_LMR_PARAM lmr;
  DAT_EVD_PARAM evd;
  DAT_EP_PARAM ep;
  DAT_PSP_PARAM psp;
  DAT_CR_PARAM cr;
} out;

#define CALL(function, ...)                                            \
  static DAT_RETURN function##_with(struct fixture* f, DAT_HANDLE h) { \
    (void)f;                                                           \
    return function(__VA_ARGS__);                                      \
  }

CALL(dat_ia_query, h, NULL, DAT_IA_FIELD_ALL, &out.ia, 0, NULL)
CALL(dat_ia_close, h, DAT_CLOSE_GRACEFUL_FLAG)
CALL(dat_pz_create, h, &made)
CALL(dat_evd_create, h, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &made)
CALL(dat_ep_create, h, f->pz, f->active.recv, f->active.request, f->active.connect, NULL, &made)
CALL(dat_psp_create, h, 5555, f->requests, DAT_PSP_CONSUMER_FLAG, &made)
CALL(dat_psp_create_any, h, &port, f->requests, DAT_PSP_CONSUMER_FLAG, &made)
CALL(dat_lmr_sync_rdma_read, h, NULL, 0)
CALL(dat_lmr_sync_rdma_write, h, NULL, 0)
static DAT_RETURN dat_lmr_create_with(struct fixture* f, DAT_HANDLE h) {
  DAT_REGION_DESCRIPTION region;
  region.for_va = f->memory;
  return dat_lmr_create(h, DAT_MEM_TYPE_VIRTUAL, region, 4096, f->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &made,
                        NULL, NULL, NULL, NULL);
}
CALL(dat_pz_query, h, DAT_PZ_FIELD_ALL, &out.pz)
CALL(dat_pz_free, h)
CALL(dat_lmr_query, h, DAT_LMR_FIELD_ALL, &out.lmr)
CALL(dat_lmr_free, h)
CALL(dat_evd_query, h, DAT_EVD_FIELD_ALL, &out.evd)
CALL(dat_evd_wait, h, 0, 1, &event, &count)
CALL(dat_evd_dequeue, h, &event)
static DAT_RETURN dat_evd_post_se_with(struct fixture* f, DAT_HANDLE h) {
  DAT_EVENT software;
  (void)f;
  memset(&software, 0, sizeof software);
  software.event_number = DAT_SOFTWARE_EVENT;
  return dat_evd_post_se(h, &software);
}
CALL(dat_evd_set_unwaitable, h)
CALL(dat_evd_clear_unwaitable, h)
CALL(dat_evd_free, h)
CALL(dat_ep_query, h, DAT_EP_FIELD_ALL, &out.ep)
CALL(dat_ep_get_status, h, NULL, NULL, NULL)
CALL(dat_ep_connect, h, f->attr.ia_address_ptr, f->port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT, 0)
CALL(dat_ep_disconnect, h, DAT_CLOSE_ABRUPT_FLAG)
CALL(dat_ep_reset, h)
CALL(dat_ep_free, h)
static DAT_RETURN post_send_with(struct fixture* f, DAT_HANDLE h) {
  DAT_LMR_TRIPLET segment = local(f, 0, 10);
  return dat_ep_post_send(h, 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG);
}
static DAT_RETURN post_recv_with(struct fixture* f, DAT_HANDLE h) {
  DAT_LMR_TRIPLET segment = local(f, 0, 10);
  return dat_ep_post_recv(h, 1, &segment, cookie(0), DAT_COMPLETION_DEFAULT_FLAG);
}
static DAT_RETURN post_rdma_write_with(struct fixture* f, DAT_HANDLE h) {
  DAT_LMR_TRIPLET segment = local(f, 0, 10);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 10);
  return dat_ep_post_rdma_write(h, 1, &segment, cookie(0), &there, DAT_COMPLETION_DEFAULT_FLAG);
}
static DAT_RETURN post_rdma_read_with(struct fixture* f, DAT_HANDLE h) {
  DAT_LMR_TRIPLET segment = local(f, 0, 10);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 10);
  return dat_ep_post_rdma_read(h, 1, &segment, cookie(0), &there, DAT_COMPLETION_DEFAULT_FLAG);
}
CALL(dat_psp_query, h, DAT_PSP_FIELD_ALL, &out.psp)
CALL(dat_psp_free, h)
CALL(dat_cr_query, h, DAT_CR_FIELD_ALL, &out.cr)
CALL(dat_cr_accept, h, f->passive.ep, 0, NULL)
CALL(dat_cr_reject, h, 0, NULL)
static DAT_RETURN set_context_with(struct fixture* f, DAT_HANDLE h) {
  DAT_CONTEXT context;
  (void)f;
  context.as_64 = 1;
  return dat_set_consumer_context(h, context);
}
static DAT_RETURN get_context_with(struct fixture* f, DAT_HANDLE h) {
  DAT_CONTEXT context;
  (void)f;
  return dat_get_consumer_context(h, &context);
}
static DAT_RETURN get_type_with(struct fixture* f, DAT_HANDLE h) {
  DAT_HANDLE_TYPE type;
  (void)f;
  return dat_get_handle_type(h, &type);
}

#define ENTRY(function) \
  { #function, function##_with }
static const struct call kIaCalls[] = {
    ENTRY(dat_ia_query),           ENTRY(dat_ia_close),           ENTRY(dat_pz_create),      ENTRY(dat_evd_create),
    ENTRY(dat_ep_create),          ENTRY(dat_psp_create),         ENTRY(dat_psp_create_any), ENTRY(dat_lmr_create),
    ENTRY(dat_lmr_sync_rdma_read), ENTRY(dat_lmr_sync_rdma_write)};
static const struct call kPzCalls[] = {ENTRY(dat_pz_query), ENTRY(dat_pz_free)};
static const struct call kLmrCalls[] = {ENTRY(dat_lmr_query), ENTRY(dat_lmr_free)};
static const struct call kEvdCalls[] = {
    ENTRY(dat_evd_query),   ENTRY(dat_evd_wait),           ENTRY(dat_evd_dequeue),
    ENTRY(dat_evd_post_se), ENTRY(dat_evd_set_unwaitable), ENTRY(dat_evd_clear_unwaitable),
    ENTRY(dat_evd_free)};
static const struct call kEpCalls[] = {ENTRY(dat_ep_query),      ENTRY(dat_ep_get_status), ENTRY(dat_ep_connect),
                                       ENTRY(dat_ep_disconnect), ENTRY(dat_ep_reset),      ENTRY(dat_ep_free),
                                       ENTRY(post_send),         ENTRY(post_recv),         ENTRY(post_rdma_write),
                                       ENTRY(post_rdma_read)};
static const struct call kPspCalls[] = {ENTRY(dat_psp_query), ENTRY(dat_psp_free)};
static const struct call kCrCalls[] = {ENTRY(dat_cr_query), ENTRY(dat_cr_accept), ENTRY(dat_cr_reject)};
static const struct call kAnyCalls[] = {ENTRY(set_context), ENTRY(get_context), ENTRY(get_type)};

enum { kIa, kPz, kLmr, kEvd, kEp, kPsp, kCr, kKinds };
#define KIND(calls, subtype) \
  { calls, sizeof calls / sizeof *calls, subtype }
static const struct {
  const struct call* calls;
  size_t count;
  DAT_RETURN_SUBTYPE subtype; /* of a handle of another kind */
} kKindCalls[kKinds] = {KIND(kIaCalls, DAT_INVALID_HANDLE_IA),   KIND(kPzCalls, DAT_INVALID_HANDLE_PZ),
                        KIND(kLmrCalls, DAT_INVALID_HANDLE_LMR), KIND(kEvdCalls, DAT_INVALID_HANDLE1),
                        KIND(kEpCalls, DAT_INVALID_HANDLE_EP),   KIND(kPspCalls, DAT_INVALID_HANDLE_PSP),
                        KIND(kCrCalls, DAT_INVALID_HANDLE_CR)};

static void expect_invalid(const struct call* call, struct fixture* f, DAT_HANDLE handle) {
  check_class(call->make(f, handle), DAT_CLASS_ERROR | DAT_INVALID_HANDLE, call->name, __FILE__, __LINE__);
}

static void expect_all_invalid(struct fixture* f, DAT_HANDLE handle, int kind) {
  for (size_t i = 0; i < kKindCalls[kind].count; ++i) expect_invalid(&kKindCalls[kind].calls[i], f, handle);
  for (size_t i = 0; i < sizeof kAnyCalls / sizeof *kAnyCalls; ++i) expect_invalid(&kAnyCalls[i], f, handle);
}

/* One object of each kind, and a connection request waiting. */
static void all_handles(struct fixture* f, DAT_HANDLE* handles) {
  begin_connect(f, &f->active, NULL, 0);
  handles[kCr] = take_request(f);
  handles[kIa] = f->ia;
  handles[kPz] = f->pz;
  handles[kLmr] = f->lmr;
  handles[kEvd] = f->active.recv;
  handles[kEp] = f->passive.ep;
  handles[kPsp] = f->psp;
}

static void every_function__null(void** state) {
  for (int kind = 0; kind < kKinds; ++kind) expect_all_invalid(*state, DAT_HANDLE_NULL, kind);
}

/* IA handles are small integers, so those that are no IA's are tried there. */
static void every_function__small_integers(void** state) {
  const struct fixture* f = *state;
  static const uintptr_t numbers[] = {2, 3, 7, 99, 1000};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    if (H(numbers[i]) == f->ia) continue;
    for (size_t k = 0; k < kKindCalls[kIa].count; ++k) expect_invalid(&kIaCalls[k], *state, H(numbers[i]));
  }
}

static void every_function__handle_of_another_kind(void** state) {
  struct fixture* f = *state;
  DAT_HANDLE handles[kKinds];
  all_handles(f, handles);
  for (int kind = 0; kind < kKinds; ++kind) {
    for (int other = 0; other < kKinds; ++other) {
      if (kind == other) continue;
      for (size_t i = 0; i < kKindCalls[kind].count; ++i) {
        const struct call* call = &kKindCalls[kind].calls[i];
        const DAT_RETURN status = call->make(f, handles[other]);
        check_class(status, DAT_CLASS_ERROR | DAT_INVALID_HANDLE, call->name, __FILE__, __LINE__);
        /* A function that takes an IA is stopped by the registry, and an IA handed to another one, too. */
        if (kind != kIa && other != kIa) {
          check_status(status, DAT_CLASS_ERROR | DAT_INVALID_HANDLE | kKindCalls[kind].subtype, call->name, __FILE__,
                       __LINE__);
        }
      }
    }
  }
  /* Nothing has come to harm. */
  assert_ok(dat_cr_accept(handles[kCr], f->passive.ep, 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  expect_event(f->passive.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void every_function__stale_handle(void** state) {
  struct fixture* f = *state;
  DAT_HANDLE handles[kKinds];
  all_handles(f, handles);
  assert_ok(dat_cr_reject(handles[kCr], 0, NULL));
  expect_event(f->active.connect, DAT_CONNECTION_EVENT_PEER_REJECTED);
  assert_ok(dat_ep_free(f->passive.ep));
  assert_ok(dat_ep_free(f->active.ep));
  assert_ok(dat_psp_free(f->psp));
  assert_ok(dat_evd_free(f->active.recv));
  assert_ok(dat_lmr_free(f->lmr));
  assert_ok(dat_pz_free(f->pz));
  for (int kind = kPz; kind < kKinds; ++kind) expect_all_invalid(f, handles[kind], kind);
  /* Freed ones are not found as further arguments either. */
  assert_error(dat_ep_create(f->ia, f->pz, NULL, NULL, NULL, NULL, &made), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
  assert_ok(dat_ia_close(f->ia, DAT_CLOSE_ABRUPT_FLAG));
  expect_all_invalid(f, f->ia, kIa);
  /* Nor after the IA has gone, and with it the provider's last use. */
  for (int kind = kPz; kind < kKinds; ++kind) expect_all_invalid(f, handles[kind], kind);
  f->ia = DAT_HANDLE_NULL;
}

static void further_arguments__null_wild_freed_wrong_kind_or_ia(void** state) {
  struct fixture* f = *state;
  struct fixture other;
  struct end foreign;
  DAT_CR_HANDLE cr;
  DAT_PZ_HANDLE freed;
  DAT_REGION_DESCRIPTION region;
  int local_variable = 0;
  open_ia(&other, IA_NAME);
  make_end(&other, &foreign, NULL);
  region.for_va = f->memory;
  assert_ok(dat_pz_create(f->ia, &freed));
  assert_ok(dat_pz_free(freed));

  const DAT_HANDLE no_pz[] = {NULL,  H(1),   H(5),         f->ia,    &local_variable,
                              freed, f->lmr, f->active.ep, other.pz, (char*)f->pz + 8};
  for (size_t i = 0; i < sizeof no_pz / sizeof *no_pz; ++i) {
    /* An EP may be made without a zone and get one later. */
    if (no_pz[i]) {
      assert_error(dat_ep_create(f->ia, no_pz[i], f->active.recv, f->active.request, f->active.connect, NULL, &made),
                   DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
    }
    assert_error(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, no_pz[i], DAT_MEM_PRIV_ALL_FLAG,
                                DAT_VA_TYPE_VA, &made, NULL, NULL, NULL, NULL),
                 DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
  }
  /* An EVD may be left out, so NULL is none of these; the wrong stream is. */
  const DAT_HANDLE no_evd[] = {H(5), &local_variable, f->pz, foreign.recv, f->requests};
  for (size_t i = 0; i < sizeof no_evd / sizeof *no_evd; ++i) {
    assert_error(dat_ep_create(f->ia, f->pz, no_evd[i], f->active.request, f->active.connect, NULL, &made),
                 DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
    assert_error(dat_ep_create(f->ia, f->pz, f->active.recv, no_evd[i], f->active.connect, NULL, &made),
                 DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
    assert_error(dat_ep_create(f->ia, f->pz, f->active.recv, f->active.request, no_evd[i], NULL, &made),
                 DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
  }
  const DAT_HANDLE no_cr_evd[] = {NULL, H(5), &local_variable, f->pz, f->active.recv};
  for (size_t i = 0; i < sizeof no_cr_evd / sizeof *no_cr_evd; ++i) {
    assert_error(dat_psp_create_any(f->ia, &port, no_cr_evd[i], DAT_PSP_CONSUMER_FLAG, &made), DAT_INVALID_HANDLE,
                 DAT_INVALID_HANDLE_EVD_CR);
  }
  assert_error(dat_evd_create(f->ia, 8, f->pz, DAT_EVD_DTO_FLAG, &made), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CNO);

  begin_connect(f, &f->active, NULL, 0);
  cr = take_request(f);
  const DAT_HANDLE no_ep[] = {NULL, H(5), &local_variable, f->pz, foreign.ep};
  for (size_t i = 0; i < sizeof no_ep / sizeof *no_ep; ++i) {
    assert_error(dat_cr_accept(cr, no_ep[i], 0, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
  }
  assert_ok(dat_cr_accept(cr, f->passive.ep, 0, NULL));
  assert_ok(dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void free__in_the_wrong_order(void** state) {
  struct fixture* f = *state;
  const DAT_EVD_HANDLE evds[] = {f->active.recv, f->active.request, f->active.connect, f->requests, f->async};
  assert_error(dat_pz_free(f->pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
  for (size_t i = 0; i < sizeof evds / sizeof *evds; ++i) {
    assert_error(dat_evd_free(evds[i]), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
  }
  assert_error(dat_ia_close(f->ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
  assert_error(dat_ia_close(f->ia, (DAT_CLOSE_FLAGS)9), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  /* All of it still works. */
  connect_ends(f);
  DAT_LMR_TRIPLET source = local(f, 0, 100);
  const DAT_RMR_TRIPLET there = remote(f, HALF, 100);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &source, cookie(1), &there, DAT_COMPLETION_DEFAULT_FLAG));
  expect_dto(f->active.request, 1, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
}

static void ia_close__graceful_waits_for_the_last_object(void** state) {
  struct fixture* f = *state;
  struct {
    const char* what;
    DAT_RETURN (*free)(DAT_HANDLE);
    DAT_HANDLE handle;
  } left[] = {{"ep", dat_ep_free, f->active.ep},
              {"ep", dat_ep_free, f->passive.ep},
              {"psp", dat_psp_free, f->psp},
              {"evd", dat_evd_free, f->requests},
              {"evd", dat_evd_free, f->active.recv},
              {"evd", dat_evd_free, f->active.request},
              {"evd", dat_evd_free, f->active.connect},
              {"evd", dat_evd_free, f->passive.recv},
              {"evd", dat_evd_free, f->passive.request},
              {"evd", dat_evd_free, f->passive.connect},
              {"lmr", dat_lmr_free, f->lmr},
              {"pz", dat_pz_free, f->pz}};
  for (size_t i = 0; i < sizeof left / sizeof *left; ++i) {
    assert_error(dat_ia_close(f->ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
    check_status(left[i].free(left[i].handle), DAT_SUCCESS, left[i].what, __FILE__, __LINE__);
  }
  assert_ok(dat_ia_close(f->ia, DAT_CLOSE_GRACEFUL_FLAG));
  assert_error_type(dat_ia_close(f->ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_HANDLE);
  assert_error_type(dat_ia_close(f->ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE);
  f->ia = DAT_HANDLE_NULL;
}

struct waiter {
  DAT_EVD_HANDLE evd;
  DAT_RETURN status;
};

static void* wait_forever(void* argument) {
  struct waiter* self = argument;
  DAT_EVENT unused;
  DAT_COUNT more;
  self->status = dat_evd_wait(self->evd, DAT_TIMEOUT_INFINITE, 1, &unused, &more);
  return NULL;
}

static void await_waiter(DAT_EVD_HANDLE evd) {
  DAT_EVENT unused;
  while (DAT_GET_TYPE(dat_evd_dequeue(evd, &unused)) != DAT_INVALID_STATE) sched_yield();
}

static void ia_close__abrupt_ends_waits_and_everything(void** state) {
  struct fixture* f = *state;
  struct waiter waiters[3] = {{f->active.recv, 0}, {f->active.connect, 0}, {f->async, 0}};
  pthread_t threads[3];
  DAT_HANDLE handles[] = {f->active.ep, f->passive.ep, f->psp, f->requests, f->active.recv, f->lmr, f->pz, f->async};
  DAT_HANDLE_TYPE type;
  DAT_LMR_TRIPLET segment = local(f, 0, 100);
  struct end third;
  make_end(f, &third, NULL);
  begin_connect(f, &third, NULL, 0); /* a request is on its way, too */
  assert_ok(dat_ep_post_recv(f->active.ep, 1, &segment, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  for (size_t i = 0; i < 3; ++i) {
    assert_int_equal(pthread_create(&threads[i], NULL, wait_forever, &waiters[i]), 0);
    await_waiter(waiters[i].evd);
  }
  assert_error(dat_evd_free(f->active.recv), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
  assert_ok(dat_ia_close(f->ia, DAT_CLOSE_ABRUPT_FLAG));
  for (size_t i = 0; i < 3; ++i) {
    pthread_join(threads[i], NULL);
    assert_error(waiters[i].status, DAT_ABORT, DAT_NO_SUBTYPE);
  }
  for (size_t i = 0; i < sizeof handles / sizeof *handles; ++i) {
    assert_error_type(dat_get_handle_type(handles[i], &type), DAT_INVALID_HANDLE);
  }
  f->ia = DAT_HANDLE_NULL;
}

static void ia_close__a_borrowed_async_evd_survives(void** state) {
  struct fixture* f = *state;
  DAT_EVD_HANDLE lent = f->async;
  DAT_IA_HANDLE second;
  DAT_EVD_HANDLE asked = DAT_HANDLE_NULL;
  DAT_EVD_PARAM param;
  assert_ok(dat_ia_open((DAT_NAME_PTR)IA_NAME, 8, &lent, &second));
  assert_ok(dat_ia_query(second, &asked, 0, NULL, 0, NULL));
  assert_ptr_equal(asked, f->async);
  assert_ok(dat_ia_close(second, DAT_CLOSE_ABRUPT_FLAG));
  assert_ok(dat_evd_query(f->async, DAT_EVD_FIELD_ALL, &param));
  assert_ptr_equal(param.ia_handle, f->ia);
}

static void handles__know_their_type_and_context(void** state) {
  static const DAT_HANDLE_TYPE types[kKinds] = {DAT_HANDLE_TYPE_IA,  DAT_HANDLE_TYPE_PZ, DAT_HANDLE_TYPE_LMR,
                                                DAT_HANDLE_TYPE_EVD, DAT_HANDLE_TYPE_EP, DAT_HANDLE_TYPE_PSP,
                                                DAT_HANDLE_TYPE_CR};
  struct fixture* f = *state;
  DAT_HANDLE handles[kKinds];
  all_handles(f, handles);
  for (int kind = 0; kind < kKinds; ++kind) {
    DAT_HANDLE_TYPE type;
    DAT_CONTEXT context;
    assert_ok(dat_get_handle_type(handles[kind], &type));
    assert_int_equal(type, types[kind]);
    assert_error_type(dat_get_consumer_context(handles[kind], &context), DAT_INVALID_STATE);
    context.as_64 = 0xfedcba9876543210ULL + (unsigned int)kind;
    assert_ok(dat_set_consumer_context(handles[kind], context));
  }
  for (int kind = 0; kind < kKinds; ++kind) {
    DAT_CONTEXT context;
    assert_ok(dat_get_consumer_context(handles[kind], &context));
    assert_int_equal(context.as_64, 0xfedcba9876543210ULL + (unsigned int)kind);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ENDS_TEST(every_function__null),
      ENDS_TEST(every_function__small_integers),
      ENDS_TEST(every_function__handle_of_another_kind),
      ENDS_TEST(every_function__stale_handle),
      ENDS_TEST(further_arguments__null_wild_freed_wrong_kind_or_ia),
      ENDS_TEST(free__in_the_wrong_order),
      ENDS_TEST(ia_close__graceful_waits_for_the_last_object),
      CONNECTED_TEST(ia_close__abrupt_ends_waits_and_everything),
      ENDS_TEST(ia_close__a_borrowed_async_evd_survives),
      ENDS_TEST(handles__know_their_type_and_context),
  };
  return RUN_TESTS(tests);
}
