/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Memory windows: created, bound, invalidated and freed, and the peer's access through them meanwhile. The passive end
 * owns the windows; the active end uses them.
 */
#include <string.h>
#include <sys/mman.h>

#include "tests/softroce/api/api.h"
#if FOR_DAT_12
#define dat_rmr_bind(rmr, lmr, triplet, privileges, va_type, ep, cookie, flags, context) \
  ((void)(va_type), dat_rmr_bind(rmr, triplet, privileges, ep, cookie, flags, context))
/* Numbered by 2.0's arguments: 1.2 lacks the LMR's handle and the kind of address. */
enum {
  kTriplet = DAT_INVALID_ARG2,
  kPrivileges = DAT_INVALID_ARG3,
  kFlags = DAT_INVALID_ARG6,
  kContext = DAT_INVALID_ARG7
};
#else
#include <dat2/dat_ib_extensions.h>
enum {
  kTriplet = DAT_INVALID_ARG3,
  kPrivileges = DAT_INVALID_ARG4,
  kFlags = DAT_INVALID_ARG8,
  kContext = DAT_INVALID_ARG9
};
#endif

#define FLAGS DAT_COMPLETION_DEFAULT_FLAG
#define READ_WRITE (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
#define WINDOW 8192U

/* Ends whose request EVDs take bind events as well. */
static void make_bind_end(struct fixture* f, struct end* end) {
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &end->recv));
  assert_ok(dat_evd_create(f->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &end->request));
  assert_ok(dat_evd_create(f->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &end->connect));
  assert_ok(dat_ep_create(f->ia, f->pz, end->recv, end->request, end->connect, NULL, &end->ep));
}

static int set_up_windows(void** state) {
  struct fixture* f;
  set_up_ia(state);
  f = *state;
  make_bind_end(f, &f->active);
  make_bind_end(f, &f->passive);
  listen_any(f);
  connect_ends(f);
  return 0;
}
#define WINDOW_TEST(test) cmocka_unit_test_setup_teardown(test, set_up_windows, tear_down)

/* Both kinds of window, and the functions that make them; 1.2 has only the first. */
typedef DAT_RETURN (*Create)(DAT_PZ_HANDLE, DAT_RMR_HANDLE*);
static const Create kBoth[] = {dat_rmr_create ONLY_20(, dat_rmr_create_for_ep)};
#define FOR_BOTH(create) for (const Create* create = kBoth; create < kBoth + sizeof kBoth / sizeof *kBoth; ++create)
/* The kind that is bound on an EP, if there is a choice. */
#define CREATE_FOR_EP ONLY_20(dat_rmr_create_for_ep) ONLY_12(dat_rmr_create)

static DAT_RMR_HANDLE make_rmr(struct fixture* f, Create create) {
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
  assert_ok(create(f->pz, &rmr));
  return rmr;
}

static DAT_RMR_COOKIE bind_cookie(uint64_t number) {
  DAT_RMR_COOKIE value;
  value.as_64 = number;
  return value;
}

static void expect_bind(struct fixture* f, DAT_RMR_HANDLE rmr, uint64_t number, DAT_RMR_BIND_COMPLETION_STATUS status) {
  const DAT_EVENT event = expect_event(f->passive.request, DAT_RMR_BIND_COMPLETION_EVENT);
  const DAT_RMR_BIND_COMPLETION_EVENT_DATA* data = &event.event_data.rmr_completion_event_data;
  assert_ptr_equal(data->rmr_handle, rmr);
  assert_int_equal(data->user_cookie.as_64, number);
  assert_int_equal(data->status, status);
}

static DAT_RETURN post_bind(struct fixture* f, DAT_RMR_HANDLE rmr, DAT_LMR_TRIPLET at, int priv, DAT_VA_TYPE va_type,
                            int flags, DAT_RMR_CONTEXT* context) {
  return dat_rmr_bind(rmr, f->lmr, &at, (DAT_MEM_PRIV_FLAGS)priv, va_type, f->passive.ep, bind_cookie(42),
                      (DAT_COMPLETION_FLAGS)flags, context);
}

/* Binds to WINDOW bytes at HALF + offset. */
static DAT_RMR_CONTEXT bind_at(struct fixture* f, DAT_RMR_HANDLE rmr, size_t offset, int priv) {
  DAT_RMR_CONTEXT context = 0;
  assert_ok(post_bind(f, rmr, local(f, HALF + offset, WINDOW), priv, DAT_VA_TYPE_VA, FLAGS, &context));
  expect_bind(f, rmr, 42, DAT_RMR_BIND_SUCCESS);
  assert_int_not_equal(context, 0);
  return context;
}

static void unbind(struct fixture* f, DAT_RMR_HANDLE rmr) {
  DAT_RMR_CONTEXT context = 77;
  assert_ok(post_bind(f, rmr, local(f, HALF, 0), 0, DAT_VA_TYPE_VA, FLAGS, &context));
  expect_bind(f, rmr, 42, DAT_RMR_BIND_SUCCESS);
  assert_int_equal(context, 0);
}

/* The active end writes 100 bytes there; checks that they arrive at `offset` of the second half. */
static void write_through(struct fixture* f, DAT_RMR_CONTEXT context, uint64_t at, size_t offset,
                          DAT_DTO_COMPLETION_STATUS status) {
  static unsigned int seed = 1;
  DAT_LMR_TRIPLET here = local(f, 0, 100);
  const DAT_RMR_TRIPLET there = rmr_triplet(at, 100, context);
  fill(f->memory, 100, ++seed);
  memset(f->memory + HALF + offset, 0, 100);
  sync_for_write(f, HALF + offset, 100);
  assert_ok(dat_ep_post_rdma_write(f->active.ep, 1, &here, cookie(seed), &there, FLAGS));
  expect_dto(f->active.request, seed, DAT_DTO_RDMA_WRITE, status);
  sync_for_write(f, HALF + offset, 100);
  assert_int_equal(is_filled(f->memory + HALF + offset, 100, seed), status == DAT_DTO_SUCCESS);
}

static uint64_t address(const struct fixture* f, size_t offset) {
  return (uintptr_t)f->memory + HALF + offset;
}

static DAT_RMR_PARAM params_of(DAT_RMR_HANDLE rmr) {
  DAT_RMR_PARAM param;
  memset(&param, 0xa5, sizeof param);
  assert_ok(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
  return param;
}

static void rmr_query__before_and_after_binding(void** state) {
  struct fixture* f = *state;
  assert_true(f->attr.max_rmrs > 0);
  ONLY_20(assert_int_equal(f->provider.rmr_scope_supported, DAT_RMR_SCOPE_ANY);)
  FOR_BOTH(create) {
    DAT_RMR_HANDLE rmr = make_rmr(f, *create);
    DAT_RMR_PARAM param = params_of(rmr);
    DAT_HANDLE_TYPE type;
    DAT_RMR_CONTEXT context;
    assert_ok(dat_get_handle_type(rmr, &type));
    assert_int_equal(type, DAT_HANDLE_TYPE_RMR);
    assert_ptr_equal(param.ia_handle, f->ia);
    assert_ptr_equal(param.pz_handle, f->pz);
    assert_int_equal(param.rmr_context, 0);
    ONLY_20(assert_int_equal(param.rmr_scope, *create == dat_rmr_create ? DAT_RMR_SCOPE_PZ : DAT_RMR_SCOPE_EP);)
    context = bind_at(f, rmr, 100, READ_WRITE);
    param = params_of(rmr);
    assert_int_equal(param.rmr_context, context);
    assert_int_equal(param.mem_priv, READ_WRITE);
    ONLY_20(assert_int_equal(param.va_type, DAT_VA_TYPE_VA);)
    assert_int_equal(param.lmr_triplet.virtual_address, address(f, 100));
    assert_int_equal(param.lmr_triplet.segment_length, WINDOW);
    assert_int_equal(param.lmr_triplet.lmr_context, f->lmr_context);
    unbind(f, rmr);
    assert_int_equal(params_of(rmr).rmr_context, 0);
    assert_ok(dat_rmr_free(rmr));
  }
}

static void rmr_bind__gives_the_peer_its_part_of_the_region(void** state) {
  struct fixture* f = *state;
  FOR_BOTH(create) {
    DAT_RMR_HANDLE rmr = make_rmr(f, *create);
    DAT_LMR_TRIPLET here = local(f, 4096, 100);
    DAT_RMR_TRIPLET there = rmr_triplet(address(f, 70), 100, 0);
    there.rmr_context = bind_at(f, rmr, 64, READ_WRITE);
    write_through(f, there.rmr_context, address(f, 64), 64, DAT_DTO_SUCCESS);
    write_through(f, there.rmr_context, address(f, 64 + WINDOW - 100), 64 + WINDOW - 100, DAT_DTO_SUCCESS);
    fill(f->memory + HALF + 70, 100, 9);
    sync_for_read(f, HALF + 70, 100);
    assert_ok(dat_ep_post_rdma_read(f->active.ep, 1, &here, cookie(5), &there, FLAGS));
    expect_dto(f->active.request, 5, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
    assert_true(is_filled(f->memory + 4096, 100, 9));
    unbind(f, rmr);
    assert_ok(dat_rmr_free(rmr));
  }
}

/* rxe checks a window's region instead of the window's own bounds, so this window ends where its region ends. */
static void rmr_bind__nothing_behind_it(void** state) {
  struct fixture* f = *state;
  DAT_RMR_HANDLE rmr = make_rmr(f, dat_rmr_create);
  const DAT_RMR_CONTEXT context = bind_at(f, rmr, HALF - WINDOW, READ_WRITE);
  write_through(f, context, address(f, HALF - 100), HALF - 100, DAT_DTO_SUCCESS);
  write_through(f, context, address(f, HALF - 99), 0, DAT_DTO_ERR_REMOTE_ACCESS);
}

static void rmr_bind__read_only_is_not_written(void** state) {
  struct fixture* f = *state;
  DAT_RMR_HANDLE rmr = make_rmr(f, CREATE_FOR_EP);
  const DAT_RMR_CONTEXT context = bind_at(f, rmr, 0, DAT_MEM_PRIV_REMOTE_READ_FLAG);
  write_through(f, context, address(f, 0), 0, DAT_DTO_ERR_REMOTE_ACCESS);
}

static void stale_after_unbinding(struct fixture* f, Create create) {
  DAT_RMR_HANDLE rmr = make_rmr(f, create);
  const DAT_RMR_CONTEXT context = bind_at(f, rmr, 0, READ_WRITE);
  write_through(f, context, address(f, 0), 0, DAT_DTO_SUCCESS);
  unbind(f, rmr);
  write_through(f, context, address(f, 0), 0, DAT_DTO_ERR_REMOTE_ACCESS);
}

static void rmr_bind__unbound_window_is_refused_at_the_peer(void** state) {
  stale_after_unbinding(*state, dat_rmr_create);
}

ONLY_20(static void rmr_bind__unbound_window_for_ep_is_refused_at_the_peer(void** state) {
  stale_after_unbinding(*state, dat_rmr_create_for_ep);
})

static void stale_after_rebinding(struct fixture* f, Create create) {
  DAT_RMR_HANDLE rmr = make_rmr(f, create);
  DAT_RMR_CONTEXT contexts[6];
  for (size_t i = 0; i < 6; ++i) {
    contexts[i] = bind_at(f, rmr, i * WINDOW, READ_WRITE);
    if (i) assert_int_not_equal(contexts[i], contexts[i - 1]);
    write_through(f, contexts[i], address(f, i * WINDOW), i * WINDOW, DAT_DTO_SUCCESS);
  }
  write_through(f, contexts[4], address(f, 5 * WINDOW), 5 * WINDOW, DAT_DTO_ERR_REMOTE_ACCESS);
}

static void rmr_bind__again_makes_the_old_context_stale(void** state) {
  stale_after_rebinding(*state, dat_rmr_create);
}

ONLY_20(static void rmr_bind__again_for_ep_makes_the_old_context_stale(void** state) {
  stale_after_rebinding(*state, dat_rmr_create_for_ep);
})

#if !FOR_DAT_12
static void rmr_bind__zero_based(void** state) {
  struct fixture* f = *state;
  DAT_RMR_HANDLE rmr = make_rmr(f, dat_rmr_create_for_ep);
  DAT_RMR_CONTEXT context = 0;
  const size_t at = HALF - WINDOW;
  assert_ok(post_bind(f, rmr, local(f, HALF + at, WINDOW), READ_WRITE, DAT_VA_TYPE_ZB, FLAGS, &context));
  expect_bind(f, rmr, 42, DAT_RMR_BIND_SUCCESS);
  assert_int_equal(params_of(rmr).va_type, DAT_VA_TYPE_ZB);
  write_through(f, context, 0, at, DAT_DTO_SUCCESS);
  write_through(f, context, 300, at + 300, DAT_DTO_SUCCESS);
  write_through(f, context, WINDOW - 100, at + WINDOW - 100, DAT_DTO_SUCCESS);
  write_through(f, context, WINDOW - 99, at, DAT_DTO_ERR_REMOTE_ACCESS);
}

#endif

static void rmr_bind__suppressed_success_makes_no_event(void** state) {
  struct fixture* f = *state;
  FOR_BOTH(create) {
    DAT_RMR_HANDLE rmr = make_rmr(f, *create);
    DAT_RMR_CONTEXT context = 0;
    for (int i = 0; i < 40; ++i) {
      assert_posted(post_bind(f, rmr, local(f, HALF, WINDOW), READ_WRITE, DAT_VA_TYPE_VA, DAT_COMPLETION_SUPPRESS_FLAG,
                              &context));
    }
    expect_nothing(f->passive.request);
    write_through(f, context, address(f, 0), 0, DAT_DTO_SUCCESS);
    unbind(f, rmr);
    assert_ok(dat_rmr_free(rmr));
  }
}

static void rmr_bind__bad_arguments(void** state) {
  struct fixture* f = *state;
  const DAT_LMR_TRIPLET good = local(f, HALF, WINDOW);
  DAT_LMR_TRIPLET bad;
  DAT_RMR_CONTEXT context;
  DAT_PZ_HANDLE pz;
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr;
  struct end other;
  assert_ok(dat_pz_create(f->ia, &pz));
  FOR_BOTH(create) {
    DAT_RMR_HANDLE rmr = make_rmr(f, *create);
    DAT_RMR_HANDLE strange;
    bad = good;
    bad.segment_length = HALF + 1;
    assert_error(post_bind(f, rmr, bad, READ_WRITE, DAT_VA_TYPE_VA, FLAGS, &context), DAT_INVALID_PARAMETER, kTriplet);
    bad = good;
    bad.virtual_address = (uintptr_t)f->memory - 1;
    assert_error(post_bind(f, rmr, bad, READ_WRITE, DAT_VA_TYPE_VA, FLAGS, &context), DAT_INVALID_PARAMETER, kTriplet);
    bad = good;
    bad.lmr_context ^= 0x100;
    assert_error(post_bind(f, rmr, bad, READ_WRITE, DAT_VA_TYPE_VA, FLAGS, &context), DAT_INVALID_PARAMETER, kTriplet);
    assert_error(
        dat_rmr_bind(rmr, f->lmr, NULL, READ_WRITE, DAT_VA_TYPE_VA, f->passive.ep, bind_cookie(1), FLAGS, &context),
        DAT_INVALID_PARAMETER, kTriplet);
    assert_error(post_bind(f, rmr, good, 0x80, DAT_VA_TYPE_VA, FLAGS, &context), DAT_INVALID_PARAMETER, kPrivileges);
    ONLY_20(assert_error(post_bind(f, rmr, good, READ_WRITE, (DAT_VA_TYPE)2, FLAGS, &context), DAT_INVALID_PARAMETER,
                         DAT_INVALID_ARG5);)
    assert_error(post_bind(f, rmr, good, READ_WRITE, DAT_VA_TYPE_VA, 0x100, &context), DAT_INVALID_PARAMETER, kFlags);
    assert_error(post_bind(f, rmr, good, READ_WRITE, DAT_VA_TYPE_VA, FLAGS, NULL), DAT_INVALID_PARAMETER, kContext);
    ONLY_20(assert_error(dat_rmr_bind(rmr, f->pz, &good, READ_WRITE, DAT_VA_TYPE_VA, f->passive.ep, bind_cookie(1),
                                      FLAGS, &context),
                         DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);)
    assert_error(dat_rmr_bind(rmr, f->lmr, &good, READ_WRITE, DAT_VA_TYPE_VA, f->lmr, bind_cookie(1), FLAGS, &context),
                 DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
    assert_error((*create)(f->pz, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
    assert_error_type((*create)(f->lmr, &strange), DAT_INVALID_HANDLE);
    /* Zones must be the same. */
    assert_ok((*create)(pz, &strange));
    assert_error(post_bind(f, strange, good, READ_WRITE, DAT_VA_TYPE_VA, FLAGS, &context), DAT_PROTECTION_VIOLATION,
                 DAT_NO_SUBTYPE);
    assert_ok(dat_rmr_free(strange));
    assert_error_type(dat_rmr_free(strange), DAT_INVALID_HANDLE);
    assert_int_equal(params_of(rmr).rmr_context, 0);
    assert_ok(dat_rmr_free(rmr));
  }
  assert_ok(dat_pz_free(pz));

  /* A window cannot grant peers a right that the LMR does not grant locally. */
  region.for_va = f->memory;
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, WINDOW, f->pz, DAT_MEM_PRIV_LOCAL_READ_FLAG,
                           DAT_VA_TYPE_VA, &lmr, &bad.lmr_context, NULL, NULL, NULL));
  bad.virtual_address = (uintptr_t)f->memory;
  bad.segment_length = 100;
  {
    DAT_RMR_HANDLE rmr = make_rmr(f, dat_rmr_create);
    assert_error(dat_rmr_bind(rmr, lmr, &bad, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA, f->passive.ep,
                              bind_cookie(1), FLAGS, &context),
                 DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE);
    ONLY_20(assert_error(post_bind(f, rmr, good, READ_WRITE, DAT_VA_TYPE_ZB, FLAGS, &context), DAT_MODEL_NOT_SUPPORTED,
                         DAT_NO_SUBTYPE);)
    /* An EP whose request EVD takes no bind events, and one that is not connected. */
    make_end(f, &other, NULL);
    assert_error(
        dat_rmr_bind(rmr, f->lmr, &good, READ_WRITE, DAT_VA_TYPE_VA, other.ep, bind_cookie(1), FLAGS, &context),
        DAT_INVALID_STATE, DAT_NO_SUBTYPE);
    free_end(&other);
    make_bind_end(f, &other);
    assert_error(
        dat_rmr_bind(rmr, f->lmr, &good, READ_WRITE, DAT_VA_TYPE_VA, other.ep, bind_cookie(1), FLAGS, &context),
        DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
    assert_int_equal(params_of(rmr).rmr_context, 0);
  }
  expect_nothing(f->passive.request);
}

/* An EP that refuses a bind does not become the window's. */
static void rmr_bind__refused_by_another_ep_leaves_the_window_alone(void** state) {
  struct fixture* f = *state;
  FOR_BOTH(create) {
    DAT_RMR_HANDLE rmr = make_rmr(f, *create);
    const DAT_RMR_CONTEXT bound = bind_at(f, rmr, 0, READ_WRITE);
    const DAT_LMR_TRIPLET at = local(f, HALF, WINDOW);
    DAT_RMR_CONTEXT context = 0;
    struct end other;
    make_bind_end(f, &other);
    assert_error(dat_rmr_bind(rmr, f->lmr, &at, READ_WRITE, DAT_VA_TYPE_VA, other.ep, bind_cookie(1), FLAGS, &context),
                 DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
    free_end(&other);
    assert_int_equal(params_of(rmr).rmr_context, bound);
    write_through(f, bound, address(f, 0), 0, DAT_DTO_SUCCESS);
    unbind(f, rmr);
    assert_ok(dat_rmr_free(rmr));
  }
}

static void rmr_bind__unbinds_what_is_not_bound(void** state) {
  struct fixture* f = *state;
  FOR_BOTH(create) {
    DAT_RMR_HANDLE rmr = make_rmr(f, *create);
    DAT_RMR_CONTEXT context;
    unbind(f, rmr);
    context = bind_at(f, rmr, 0, READ_WRITE);
    unbind(f, rmr);
    unbind(f, rmr);
    context = bind_at(f, rmr, 64, READ_WRITE);
    write_through(f, context, address(f, 64), 64, DAT_DTO_SUCCESS);
    assert_ok(dat_rmr_free(rmr));
  }
}

/* The other end of the connection has the same zone. */
static void rmr_bind__moves_the_window_to_another_ep(void** state) {
  struct fixture* f = *state;
  FOR_BOTH(create) {
    DAT_RMR_HANDLE rmr = make_rmr(f, *create);
    const DAT_LMR_TRIPLET at = local(f, HALF, WINDOW);
    DAT_LMR_TRIPLET here = local(f, 0, 100);
    DAT_RMR_TRIPLET there = rmr_triplet(address(f, 0), 100, 0);
    DAT_RMR_CONTEXT old = bind_at(f, rmr, 0, READ_WRITE);
    assert_ok(dat_rmr_bind(rmr, f->lmr, &at, READ_WRITE, DAT_VA_TYPE_VA, f->active.ep, bind_cookie(43), FLAGS,
                           &there.rmr_context));
    expect_event(f->active.request, DAT_RMR_BIND_COMPLETION_EVENT);
    assert_int_equal(params_of(rmr).rmr_context, there.rmr_context);
    assert_int_not_equal(there.rmr_context, old);
    fill(f->memory, 100, 33);
    assert_ok(dat_ep_post_rdma_write(f->passive.ep, 1, &here, cookie(7), &there, FLAGS));
    expect_dto(f->passive.request, 7, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS);
    sync_for_write(f, HALF, 100);
    assert_true(is_filled(f->memory + HALF, 100, 33));
    old = there.rmr_context;
    unbind(f, rmr); /* on the first EP again */
    assert_int_equal(params_of(rmr).rmr_context, 0);
    assert_int_not_equal(bind_at(f, rmr, 0, READ_WRITE), old);
    assert_ok(dat_rmr_free(rmr));
  }
  assert_ok(dat_lmr_free(f->lmr));
}

static void moved_window_is_stale(struct fixture* f, Create create) {
  DAT_RMR_HANDLE rmr = make_rmr(f, create);
  const DAT_RMR_CONTEXT old = bind_at(f, rmr, 0, READ_WRITE);
  const DAT_LMR_TRIPLET at = local(f, HALF, WINDOW);
  DAT_RMR_CONTEXT context = 0;
  assert_ok(dat_rmr_bind(rmr, f->lmr, &at, READ_WRITE, DAT_VA_TYPE_VA, f->active.ep, bind_cookie(43), FLAGS, &context));
  expect_event(f->active.request, DAT_RMR_BIND_COMPLETION_EVENT);
  write_through(f, old, address(f, 0), 0, DAT_DTO_ERR_REMOTE_ACCESS);
}

static void rmr_bind__on_another_ep_makes_the_old_context_stale(void** state) {
  moved_window_is_stale(*state, CREATE_FOR_EP);
}

static void lmr_free__not_while_a_window_is_bound(void** state) {
  struct fixture* f = *state;
  FOR_BOTH(create) {
    DAT_RMR_HANDLE rmr = make_rmr(f, *create);
    bind_at(f, rmr, 0, READ_WRITE);
    assert_error(dat_lmr_free(f->lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
    bind_at(f, rmr, 0, READ_WRITE);
    assert_error(dat_lmr_free(f->lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
    assert_error(dat_pz_free(f->pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
    assert_ok(dat_rmr_free(rmr)); /* a bound one, too */
  }
  assert_ok(dat_lmr_free(f->lmr));
}

/* A window of the whole zone survives the EP that carried out its bind. */
#if !FOR_DAT_12
static void ep_free__takes_the_bindings_of_its_windows_along(void** state) {
  struct fixture* f = *state;
  DAT_RMR_HANDLE rmr = make_rmr(f, dat_rmr_create_for_ep);
  bind_at(f, rmr, 0, READ_WRITE);
  assert_ok(dat_ep_free(f->passive.ep));
  assert_int_equal(params_of(rmr).rmr_context, 0);
  assert_ok(dat_lmr_free(f->lmr));
  assert_ok(dat_rmr_free(rmr));
}
#endif

static void rmr_bind__flushed_on_a_disconnected_ep(void** state) {
  struct fixture* f = *state;
  FOR_BOTH(create) {
    DAT_RMR_HANDLE rmr = make_rmr(f, *create);
    DAT_RMR_CONTEXT context = 0;
    assert_ok(dat_ep_disconnect(f->passive.ep, DAT_CLOSE_ABRUPT_FLAG));
    assert_ok(post_bind(f, rmr, local(f, HALF, WINDOW), READ_WRITE, DAT_VA_TYPE_VA, FLAGS, &context));
    expect_bind(f, rmr, 42, DAT_DTO_ERR_FLUSHED);
    assert_int_equal(params_of(rmr).rmr_context, 0);
    assert_ok(dat_rmr_free(rmr));
  }
  assert_ok(dat_lmr_free(f->lmr));
}

/* ---- Invalidation by the peer ---- */

#if !FOR_DAT_12

static DAT_DTO_COMPLETION_EVENT_DATA send_invalidate(struct fixture* f, DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context,
                                                     DAT_DTOS operation) {
  DAT_LMR_TRIPLET here = local(f, 0, 200);
  DAT_LMR_TRIPLET there = local(f, HALF + 65536, 200);
  DAT_DTO_COMPLETION_EVENT_DATA received;
  fill(f->memory, 200, context);
  assert_ok(dat_ep_post_recv(f->passive.ep, 1, &there, cookie(11), FLAGS));
  assert_ok(dat_ep_post_send_with_invalidate(f->active.ep, 1, &here, cookie(12), FLAGS, invalidate, context));
  received = expect_dto(f->passive.recv, 11, operation, DAT_DTO_SUCCESS);
  expect_dto(f->active.request, 12, DAT_DTO_SEND, DAT_DTO_SUCCESS);
  assert_int_equal(received.transfered_length, 200);
  assert_true(is_filled(f->memory + HALF + 65536, 200, context));
  return received;
}

static void send_with_invalidate__makes_the_window_stale(void** state) {
  struct fixture* f = *state;
  DAT_RMR_HANDLE rmr = make_rmr(f, dat_rmr_create_for_ep);
  for (int round = 0; round < 3; ++round) {
    const DAT_RMR_CONTEXT context = bind_at(f, rmr, 0, READ_WRITE);
    write_through(f, context, address(f, 0), 0, DAT_DTO_SUCCESS);
    assert_int_equal(send_invalidate(f, DAT_TRUE, context, DAT_DTO_RECEIVE_WITH_INVALIDATE).rmr_context, context);
    assert_int_equal(params_of(rmr).rmr_context, 0);
    if (round == 1) unbind(f, rmr); /* like a program that has not noticed the invalidation */
    if (round == 2) write_through(f, context, address(f, 0), 0, DAT_DTO_ERR_REMOTE_ACCESS);
  }
  assert_ok(dat_lmr_free(f->lmr)); /* nothing is bound to it any more */
}

static void send_with_invalidate__false_is_a_plain_send(void** state) {
  struct fixture* f = *state;
  DAT_RMR_HANDLE rmr = make_rmr(f, dat_rmr_create_for_ep);
  const DAT_RMR_CONTEXT context = bind_at(f, rmr, 0, READ_WRITE);
  assert_int_equal(send_invalidate(f, DAT_FALSE, context, DAT_DTO_RECEIVE).rmr_context, 0);
  write_through(f, context, address(f, 0), 0, DAT_DTO_SUCCESS);
}

/* ---- RDMA Read into a window ---- */

static void rdma_read_to_rmr__lands_where_the_window_is(void** state) {
  struct fixture* f = *state;
  DAT_RMR_HANDLE rmr = make_rmr(f, dat_rmr_create_for_ep);
  const DAT_RMR_TRIPLET source = remote(f, 500, 1000);
  DAT_RMR_TRIPLET sink = {address(f, 64 + 10), 1000, 0};
  DAT_RMR_TRIPLET bad;
  sink.rmr_context = bind_at(f, rmr, 64, READ_WRITE);
  fill(f->memory + 500, 1000, 21);
  sync_for_read(f, 500, 1000);
  assert_ok(dat_ep_post_rdma_read_to_rmr(f->passive.ep, &sink, cookie(3), &source, FLAGS));
  expect_dto(f->passive.request, 3, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS);
  assert_true(is_filled(f->memory + HALF + 64 + 10, 1000, 21));

  assert_error(dat_ep_post_rdma_read_to_rmr(f->passive.ep, NULL, cookie(3), &source, FLAGS), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG2);
  assert_error(dat_ep_post_rdma_read_to_rmr(f->passive.ep, &sink, cookie(3), NULL, FLAGS), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG4);
  bad = sink;
  bad.virtual_address = address(f, 63);
  assert_error(dat_ep_post_rdma_read_to_rmr(f->passive.ep, &bad, cookie(3), &source, FLAGS), DAT_PROTECTION_VIOLATION,
               DAT_NO_SUBTYPE);
  bad = sink;
  bad.rmr_context ^= 1;
  assert_error(dat_ep_post_rdma_read_to_rmr(f->passive.ep, &bad, cookie(3), &source, FLAGS), DAT_PROTECTION_VIOLATION,
               DAT_NO_SUBTYPE);
  bad = sink;
  bad.segment_length = 1001;
  assert_error(dat_ep_post_rdma_read_to_rmr(f->passive.ep, &bad, cookie(3), &source, FLAGS), DAT_LENGTH_ERROR,
               DAT_NO_SUBTYPE);
  sink.rmr_context = bind_at(f, rmr, 64, DAT_MEM_PRIV_REMOTE_READ_FLAG);
  assert_error(dat_ep_post_rdma_read_to_rmr(f->passive.ep, &sink, cookie(3), &source, FLAGS), DAT_PRIVILEGES_VIOLATION,
               DAT_NO_SUBTYPE);
}

static void rdma_read_to_rmr__endpoint_without_a_zone(void** state) {
  struct fixture* f = *state;
  DAT_RMR_TRIPLET sink = {address(f, 64), 10, 0};
  const DAT_RMR_TRIPLET source = remote(f, 500, 10);
  DAT_EP_HANDLE ep;
  assert_ok(dat_ep_create(f->ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, NULL, &ep));
  assert_error(dat_ep_post_rdma_read_to_rmr(ep, &sink, cookie(3), &source, DAT_COMPLETION_DEFAULT_FLAG),
               DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONFIGURED);
  assert_ok(dat_ep_free(ep));
}

/* The sink, one byte too long, is the error, on devices whose longest message is not out of reach. */
static void rdma_read_to_rmr__longer_than_a_message(void** state) {
  struct fixture* f = *state;
  const DAT_SEG_LENGTH length = f->attr.max_message_size + 1;
  DAT_RMR_HANDLE rmr = make_rmr(f, dat_rmr_create_for_ep);
  DAT_RMR_TRIPLET sink = {0, length, 0};
  const DAT_RMR_TRIPLET source = {0, length, 1};
  DAT_LMR_TRIPLET at = {0, length, 0};
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr;
  if (length > 64U << 20) skip();
  region.for_va = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(region.for_va, MAP_FAILED);
  assert_ok(dat_lmr_create(f->ia, DAT_MEM_TYPE_VIRTUAL, region, length, f->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
                           &lmr, &at.lmr_context, NULL, NULL, &at.virtual_address));
  assert_ok(dat_rmr_bind(rmr, lmr, &at, (DAT_MEM_PRIV_FLAGS)READ_WRITE, DAT_VA_TYPE_VA, f->passive.ep, bind_cookie(42),
                         FLAGS, &sink.rmr_context));
  expect_bind(f, rmr, 42, DAT_RMR_BIND_SUCCESS);
  sink.virtual_address = at.virtual_address;
  assert_error(dat_ep_post_rdma_read_to_rmr(f->passive.ep, &sink, cookie(3), &source, FLAGS), DAT_INVALID_PARAMETER,
               DAT_INVALID_ARG2);
  assert_ok(dat_rmr_free(rmr));
  assert_ok(dat_lmr_free(lmr));
  munmap(region.for_va, length);
}

#endif

static void ia_close__graceful_not_with_a_window_left(void** state) {
  struct fixture* f = *state;
  DAT_RMR_HANDLE rmr = make_rmr(f, dat_rmr_create);
  (void)rmr;
  assert_error(dat_ia_close(f->ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      WINDOW_TEST(rmr_query__before_and_after_binding),
      WINDOW_TEST(rmr_bind__gives_the_peer_its_part_of_the_region),
      WINDOW_TEST(rmr_bind__nothing_behind_it),
      WINDOW_TEST(rmr_bind__read_only_is_not_written),
      WINDOW_TEST(rmr_bind__unbound_window_is_refused_at_the_peer),
      ONLY_20(WINDOW_TEST(rmr_bind__unbound_window_for_ep_is_refused_at_the_peer), )
          WINDOW_TEST(rmr_bind__again_makes_the_old_context_stale),
      ONLY_20(WINDOW_TEST(rmr_bind__again_for_ep_makes_the_old_context_stale), )
          ONLY_20(WINDOW_TEST(rmr_bind__zero_based), ) WINDOW_TEST(rmr_bind__suppressed_success_makes_no_event),
      WINDOW_TEST(rmr_bind__bad_arguments),
      WINDOW_TEST(rmr_bind__flushed_on_a_disconnected_ep),
      WINDOW_TEST(rmr_bind__refused_by_another_ep_leaves_the_window_alone),
      WINDOW_TEST(rmr_bind__unbinds_what_is_not_bound),
      WINDOW_TEST(rmr_bind__moves_the_window_to_another_ep),
      WINDOW_TEST(rmr_bind__on_another_ep_makes_the_old_context_stale),
      WINDOW_TEST(lmr_free__not_while_a_window_is_bound),
      ONLY_20(WINDOW_TEST(ep_free__takes_the_bindings_of_its_windows_along), )
          ONLY_20(WINDOW_TEST(send_with_invalidate__makes_the_window_stale), )
              ONLY_20(WINDOW_TEST(send_with_invalidate__false_is_a_plain_send), )
                  ONLY_20(WINDOW_TEST(rdma_read_to_rmr__lands_where_the_window_is), )
                      ONLY_20(WINDOW_TEST(rdma_read_to_rmr__endpoint_without_a_zone), )
                          ONLY_20(WINDOW_TEST(rdma_read_to_rmr__longer_than_a_message), )
                              IA_TEST(ia_close__graceful_not_with_a_window_left),
  };
  return RUN_TESTS(tests);
}
