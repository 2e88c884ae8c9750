/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Relaxed ordering in DAT 1.2: the access flags that verbs gets for each combination of the IA's name, the type of
 * memory and the flag. This program's functions are found before libibverbs', and so see the flags.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/softroce/api/api.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static unsigned int last_access;
static unsigned int registrations;

static void see(unsigned int access) {
  last_access = access;
  registrations++;
}

__attribute__((visibility("default"))) struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* at, size_t length,
                                                                 int access) {
  see((unsigned int)access);
  return ((__typeof__(&ibv_reg_mr))(uintptr_t)dlsym(RTLD_NEXT, "ibv_reg_mr"))(pd, at, length, access);
}

__attribute__((visibility("default"))) struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* at, size_t length,
                                                                       uint64_t iova, unsigned int access) {
  see(access);
  return ((__typeof__(&ibv_reg_mr_iova2))(uintptr_t)dlsym(RTLD_NEXT, "ibv_reg_mr_iova2"))(pd, at, length, iova, access);
}

enum { kPages = 4096 };
static char cookie_bytes[DAT_LMR_COOKIE_SIZE];

struct memory {
  DAT_IA_HANDLE ia;
  DAT_PZ_HANDLE pz;
  void* shared;
};

/* Registers a region. True if the device may order its accesses freely. */
static bool is_relaxed(const struct memory* m, DAT_MEM_TYPE type, DAT_LMR_HANDLE original, int flag,
                       DAT_LMR_HANDLE* lmr) {
  const DAT_MEM_PRIV_FLAGS privileges = (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG | flag);
  const unsigned int before = registrations;
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_PARAM param;
  memset(&region, 0, sizeof region);
  if (type == DAT_MEM_TYPE_LMR) {
    region.for_lmr_handle = original;
  } else if (type == DAT_MEM_TYPE_SHARED_VIRTUAL) {
    region.for_shared_memory.virtual_address = m->shared;
    region.for_shared_memory.shared_memory_id = &cookie_bytes;
  } else {
    region.for_va = m->shared;
  }
  assert_ok(dat_lmr_create(m->ia, type, region, kPages, m->pz, privileges, 0, lmr, NULL, NULL, NULL, NULL));
  assert_int_equal(registrations, before + 1);
  /* The type and the rights of the registration do not depend on the ordering. */
  assert_ok(dat_lmr_query(*lmr, DAT_LMR_FIELD_ALL, &param));
  assert_int_equal(param.mem_type, type);
  assert_int_equal(param.mem_priv, privileges);
  assert_int_equal(last_access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ),
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  return last_access & IBV_ACCESS_RELAXED_ORDERING;
}

static void expect_orders(const char* name, bool aware) {
  static const DAT_MEM_TYPE types[] = {DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_SO_VIRTUAL, DAT_MEM_TYPE_SHARED_VIRTUAL};
  struct memory m;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_PROVIDER_ATTR attr;
  m.shared = mmap(NULL, kPages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)name, 8, &async, &m.ia));
  assert_ok(dat_pz_create(m.ia, &m.pz));
  /* The prefix does not belong to the name. */
  assert_ok(dat_ia_query(m.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
  assert_string_equal(attr.provider_name, IA_NAME);
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    const bool may_be = aware && types[i] != DAT_MEM_TYPE_SO_VIRTUAL;
    for (int flag = 0; flag <= DAT_MEM_PRIV_RO_DISABLE_FLAG; flag += DAT_MEM_PRIV_RO_DISABLE_FLAG) {
      DAT_LMR_HANDLE lmr, again;
      const bool relaxed = may_be && !flag;
      assert_int_equal(is_relaxed(&m, types[i], DAT_HANDLE_NULL, flag, &lmr), relaxed);
      /* Over another region: ordered at least as strongly as that. */
      assert_int_equal(is_relaxed(&m, DAT_MEM_TYPE_LMR, lmr, 0, &again), relaxed);
      assert_ok(dat_lmr_free(again));
      assert_false(is_relaxed(&m, DAT_MEM_TYPE_LMR, lmr, DAT_MEM_PRIV_RO_DISABLE_FLAG, &again));
      assert_ok(dat_lmr_free(again));
      assert_ok(dat_lmr_free(lmr));
    }
  }
  assert_ok(dat_ia_close(m.ia, DAT_CLOSE_ABRUPT_FLAG));
  munmap(m.shared, kPages);
}

static void unaware__never_sees_it(void** state) {
  (void)state;
  expect_orders(IA_NAME, false);
}

static void aware__has_it_where_it_does_not_say_otherwise(void** state) {
  (void)state;
  expect_orders("RO_AWARE_" IA_NAME, true);
}

static void aware__one_does_not_change_another(void** state) {
  struct memory unaware, aware;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_LMR_HANDLE lmr;
  (void)state;
  unaware.shared = aware.shared = mmap(NULL, kPages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)("RO_AWARE_" IA_NAME), 8, &async, &aware.ia));
  async = DAT_HANDLE_NULL;
  assert_ok(dat_ia_open((DAT_NAME_PTR)(uintptr_t)IA_NAME, 8, &async, &unaware.ia));
  assert_ok(dat_pz_create(aware.ia, &aware.pz));
  assert_ok(dat_pz_create(unaware.ia, &unaware.pz));
  assert_true(is_relaxed(&aware, DAT_MEM_TYPE_VIRTUAL, DAT_HANDLE_NULL, 0, &lmr));
  assert_false(is_relaxed(&unaware, DAT_MEM_TYPE_VIRTUAL, DAT_HANDLE_NULL, 0, &lmr));
  assert_ok(dat_ia_close(aware.ia, DAT_CLOSE_ABRUPT_FLAG));
  assert_ok(dat_ia_close(unaware.ia, DAT_CLOSE_ABRUPT_FLAG));
  munmap(aware.shared, kPages);
}

/* The prefix is removed once, and only in capitals: no IA has the names that remain here. */
static void aware__the_prefix_is_one(void** state) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_IA_HANDLE ia;
  (void)state;
  assert_error(dat_ia_open((DAT_NAME_PTR)(uintptr_t)("RO_AWARE_RO_AWARE_" IA_NAME), 8, &async, &ia),
               DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
  assert_error(dat_ia_open((DAT_NAME_PTR)(uintptr_t)("ro_aware_" IA_NAME), 8, &async, &ia), DAT_PROVIDER_NOT_FOUND,
               DAT_NAME_NOT_REGISTERED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(unaware__never_sees_it),
      cmocka_unit_test(aware__has_it_where_it_does_not_say_otherwise),
      cmocka_unit_test(aware__one_does_not_change_another),
      cmocka_unit_test(aware__the_prefix_is_one),
  };
  return RUN_TESTS(tests);
}
