/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/*
 * dappledv_fault_next(), dappledv_fault_clear() and dappledv_fault_pending(), as a unit test in C uses them under
 * dapple-run. The tests run in this order.
 */
#include <infiniband/dappledv.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct ibv_context* context;
static struct ibv_pd* pd;
static char buffer[64];

/* The first software device. */
static struct ibv_context* open_device(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  struct ibv_context* opened = NULL;

  for (struct ibv_device** at = list; list && *at; at++) {
    if (strncmp(ibv_get_device_name(*at), "dapple", strlen("dapple"))) continue;
    opened = ibv_open_device(*at);
    break;
  }
  if (list) {
    const int error = errno;
    ibv_free_device_list(list);
    errno = error;
  }
  return opened;
}

static int close_device(void** state) {
  (void)state;
  if (pd) ibv_dealloc_pd(pd);
  if (context) ibv_close_device(context);
  return 0;
}

static int clear(void** state) {
  (void)state;
  return dappledv_fault_clear();
}

static void assert_registers(void) {
  struct ibv_mr* mr = ibv_reg_mr(pd, buffer, sizeof(buffer), 0);

  assert_non_null(mr);
  assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void fault_next__open__fails_once(void** state) {
  (void)state;
  assert_int_equal(dappledv_fault_next("ibv_open_device", ENFILE), 0);
  errno = 0;
  assert_null(open_device());
  assert_int_equal(errno, ENFILE);
  context = open_device();
  assert_non_null(context);
  pd = ibv_alloc_pd(context);
  assert_non_null(pd);
}

static void fault_next__registration__enomem_once(void** state) {
  (void)state;
  assert_registers();
  assert_int_equal(dappledv_fault_next("ibv_reg_mr", ENOMEM), 0);
  errno = 0;
  assert_null(ibv_reg_mr(pd, buffer, sizeof(buffer), 0));
  assert_int_equal(errno, ENOMEM);
  assert_registers();
}

static void fault_next__twice__the_second_counts(void** state) {
  (void)state;
  assert_int_equal(dappledv_fault_next("ibv_create_cq", ENOMEM), 0);
  assert_int_equal(dappledv_fault_next("ibv_create_cq", EINTR), 0);
  errno = 0;
  assert_null(ibv_create_cq(context, 1, NULL, NULL, 0));
  assert_int_equal(errno, EINTR);
  struct ibv_cq* cq = ibv_create_cq(context, 1, NULL, NULL, 0);
  assert_non_null(cq);
  assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void fault_next__query_of_the_clock__fails_once(void** state) {
  struct ibv_values_ex values;

  (void)state;
  memset(&values, 0, sizeof(values));
  values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
  assert_int_equal(dappledv_fault_next("ibv_query_rt_values_ex", EIO), 0);
  errno = 0;
  assert_int_equal(ibv_query_rt_values_ex(context, &values), EIO);
  assert_int_equal(errno, EIO);
  assert_int_equal(ibv_query_rt_values_ex(context, &values), 0);
}

static void fault_next__unknown__einval_and_no_fault(void** state) {
  static const struct {
    const char* verb;
    int error;
  } wrong[] = {
      {NULL, ENOMEM},
      {"", ENOMEM},
      {"reg_mr", ENOMEM},
      {"ibv_create_flow_action_esp", ENOMEM},
      {"ibv_unimport_mr", ENOMEM},
      {"ibv_reg_mr", 0},
      {"ibv_reg_mr", -1},
      {"ibv_reg_mr", 4096},
      {"completion", 0},
      {"completion", 1000},
      {"completion", -1},
      {"completion", 256 + IBV_WC_RETRY_EXC_ERR},
      {"event", -1},
      {"event", 1000},
      {"link", 1},
  };

  (void)state;
  errno = 0;
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
    assert_int_equal(dappledv_fault_next(wrong[i].verb, wrong[i].error), EINVAL);
  assert_int_equal(errno, 0);
  assert_registers();
}

static void fault_clear__before_the_call__no_failure(void** state) {
  (void)state;
  assert_int_equal(dappledv_fault_next("ibv_reg_mr", ENOMEM), 0);
  assert_int_equal(dappledv_fault_clear(), 0);
  assert_registers();
}

static void fault_pending__until_the_call_or_clear__1(void** state) {
  (void)state;
  errno = 0;
  assert_int_equal(dappledv_fault_pending(NULL), 0);
  /* This event has the number 0. */
  assert_int_equal(dappledv_fault_next("event", IBV_EVENT_CQ_ERR), 0);
  assert_int_equal(dappledv_fault_next("ibv_reg_mr", ENOMEM), 0);
  assert_int_equal(dappledv_fault_pending("event"), 1);
  assert_int_equal(dappledv_fault_pending("ibv_reg_mr"), 1);
  assert_int_equal(dappledv_fault_pending("ibv_create_cq"), 0);
  assert_int_equal(dappledv_fault_pending("no_verb"), 0);
  assert_null(ibv_reg_mr(pd, buffer, sizeof(buffer), 0));
  errno = 0;
  assert_int_equal(dappledv_fault_pending("ibv_reg_mr"), 0);
  assert_int_equal(dappledv_fault_pending(NULL), 1);
  assert_int_equal(dappledv_fault_clear(), 0);
  assert_int_equal(dappledv_fault_pending(NULL), 0);
  assert_int_equal(errno, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(fault_next__open__fails_once, clear),
      cmocka_unit_test_setup(fault_next__registration__enomem_once, clear),
      cmocka_unit_test_setup(fault_next__twice__the_second_counts, clear),
      cmocka_unit_test_setup(fault_next__query_of_the_clock__fails_once, clear),
      cmocka_unit_test_setup(fault_next__unknown__einval_and_no_fault, clear),
      cmocka_unit_test_setup(fault_clear__before_the_call__no_failure, clear),
      cmocka_unit_test_setup(fault_pending__until_the_call_or_clear__1, clear),
  };

  return cmocka_run_group_tests(tests, NULL, close_device);
}
