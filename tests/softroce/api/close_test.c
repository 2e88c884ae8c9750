/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* Closing an IA: gracefully if no object is left, abruptly with all kinds of objects. */
#include <pthread.h>
#include <sched.h>

#include "tests/softroce/api/api.h"

static DAT_RETURN reject(DAT_CR_HANDLE cr) {
  return dat_cr_reject(cr, 0, NULL);
}

static void ia_close__graceful_waits_for_the_last_object(void** state) {
  struct fixture* f = *state;
  const DAT_OS_WAIT_PROXY_AGENT no_agent = {NULL, NULL};
  DAT_SRQ_ATTR srq_attr = {16, 2, 0};
  DAT_HANDLE rmr = DAT_HANDLE_NULL, srq, cno, rsp, cr;
  if (!on_iwarp()) assert_ok(dat_rmr_create(f->pz, &rmr));
  assert_ok(dat_srq_create(f->ia, f->pz, &srq_attr, &srq));
  assert_ok(dat_cno_create(f->ia, no_agent, &cno));
  assert_ok(dat_rsp_create(f->ia, 7001, f->passive.ep, f->requests, &rsp));
  begin_connect(f, &f->active, NULL, 0);
  cr = take_request(f);
  struct {
    const char* what;
    DAT_RETURN (*free)(DAT_HANDLE);
    DAT_HANDLE handle;
  } left[] = {{"cr", reject, cr},
              {"rsp", dat_rsp_free, rsp},
              {"cno", dat_cno_free, cno},
              {"srq", dat_srq_free, srq},
              {"rmr", dat_rmr_free, rmr},
              {"ep", dat_ep_free, f->active.ep},
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
    if (left[i].handle == DAT_HANDLE_NULL) continue;
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
  begin_connect(f, &third, NULL, 0); /* and a request that is on its way */
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

int main(void) {
  const struct CMUnitTest tests[] = {
      ENDS_TEST(ia_close__graceful_waits_for_the_last_object),
      CONNECTED_TEST(ia_close__abrupt_ends_waits_and_everything),
      ENDS_TEST(ia_close__a_borrowed_async_evd_survives),
  };
  return RUN_TESTS(tests);
}
