/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* A program that finds libdat2 at run time, as MPIs do. This one is not linked with it. */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <dat2/udat.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef DAT_RETURN Open(const DAT_NAME_PTR, DAT_COUNT, DAT_EVD_HANDLE*, DAT_IA_HANDLE*, DAT_UINT32, DAT_UINT32,
                        DAT_BOOLEAN);
typedef DAT_RETURN Query(DAT_IA_HANDLE, DAT_EVD_HANDLE*, DAT_IA_ATTR_MASK, DAT_IA_ATTR*, DAT_PROVIDER_ATTR_MASK,
                         DAT_PROVIDER_ATTR*);
typedef DAT_RETURN Close(DAT_IA_HANDLE, DAT_CLOSE_FLAGS);

/* Returns 0, or the number of the failed step. */
static int use(int flags, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_IA_ATTR attr;
    void* const library = dlopen("libdat2.so.2", RTLD_NOW | flags);
    if (!library) return 1;
    Open* const open = (Open*)(uintptr_t)dlsym(library, "dat_ia_openv");
    Query* const query = (Query*)(uintptr_t)dlsym(library, "dat_ia_query");
    Close* const close_ia = (Close*)(uintptr_t)dlsym(library, "dat_ia_close");
    if (!open || !query || !close_ia) return 2;
    if (open((DAT_NAME_PTR) "ofa-v2-rxe", 8, &async, &ia, 2, 0, DAT_FALSE) != DAT_SUCCESS) return 3;
    if (query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL) != DAT_SUCCESS) return 4;
    if (close_ia(ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS) return 5;
    if (dlclose(library)) return 6;
  }
  return 0;
}

static void expect_good(int flags, int rounds) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    exit(use(flags, rounds));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void dlopen__rtld_local(void** state) {
  (void)state;
  expect_good(RTLD_LOCAL, 1);
  expect_good(RTLD_LOCAL, 3);
}

static void dlopen__rtld_global(void** state) {
  (void)state;
  expect_good(RTLD_GLOBAL, 1);
  expect_good(RTLD_GLOBAL, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dlopen__rtld_local),
      cmocka_unit_test(dlopen__rtld_global),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
