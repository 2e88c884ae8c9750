/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * libdat.so.1 and libdat2.so.2 in one process: loaded in either order and scope, and with each other's handles. This
 * program is linked with neither, and includes neither's headers, which cannot be included together.
 */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The constants on which both versions agree. */
enum { kDtoFlag = 0x20, kAbrupt = 0, kGraceful = 1 };
static const uint32_t kInvalidHandle = 0x80050000U;
static const uint32_t kModelNotSupported = 0x80090000U;
static const uint32_t kTypeMask = 0xffff0000U;

typedef uint32_t Open(const char*, int, void**, void**, uint32_t, uint32_t, int);
typedef uint32_t PzCreate(void*, void**);
typedef uint32_t EvdCreate(void*, int, void*, int, void**);
typedef uint32_t EpCreate(void*, void*, void*, void*, void*, const void*, void**);
typedef uint32_t CnoCreate(void*, void*, void*, void**); /* the agent by value: two words */
typedef uint32_t Close(void*, int);
/* Any function that takes a handle first. */
typedef uint32_t Any(void*, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
                     uint64_t, uint64_t);

enum { kObjects = 6 };
struct version {
  const char* library;
  uint32_t major, minor;
  const char* const* functions;
  void* loaded;
  void* ia;
  void* objects[kObjects]; /* the last one: an IA as the provider knows it */
};

/* Functions whose first argument is any object but an IA, and functions that take an IA. */
static const char* const kFunctions12[] = {FUNCTIONS_12, NULL};
static const char* const kFunctions20[] = {FUNCTIONS_20, NULL};

static void* find(const struct version* v, const char* name) {
  void* function = dlsym(v->loaded, name);
  if (!function) {
    fprintf(stderr, "%s has no %s\n", v->library, name);
    _exit(50);
  }
  return function;
}
#define CALL(v, type, name) ((type*)(uintptr_t)find(v, name))

static void must(uint32_t status, const char* what, const struct version* v) {
  if (status == 0) return;
  fprintf(stderr, "%s of %s: 0x%x\n", what, v->library, status);
  _exit(51);
}

static void open_version(struct version* v, int flags) {
  void* async = NULL;
  v->loaded = dlopen(v->library, RTLD_NOW | flags);
  if (!v->loaded) {
    fprintf(stderr, "%s\n", dlerror());
    _exit(52);
  }
  must(CALL(v, Open, "dat_ia_openv")("both", 8, &async, &v->ia, v->major, v->minor, 0), "open", v);
  must(CALL(v, PzCreate, "dat_pz_create")(v->ia, &v->objects[0]), "PZ", v);
  must(CALL(v, EvdCreate, "dat_evd_create")(v->ia, 8, NULL, kDtoFlag, &v->objects[1]), "EVD", v);
  must(CALL(v, EpCreate, "dat_ep_create")(v->ia, v->objects[0], v->objects[1], v->objects[1], NULL, NULL,
                                          &v->objects[2]),
       "EP", v);
  must(CALL(v, CnoCreate, "dat_cno_create")(v->ia, NULL, NULL, &v->objects[3]), "CNO", v);
  const uint32_t window = CALL(v, PzCreate, "dat_rmr_create")(v->objects[0], &v->objects[4]);
  if (strncmp(getenv("SOFTROCE_DEVICE"), "siw", 3) == 0) { /* iWARP has no window: a second zone replaces it */
    must(window != kModelNotSupported, "RMR on iWARP", v);
    must(CALL(v, PzCreate, "dat_pz_create")(v->ia, &v->objects[4]), "PZ", v);
  } else {
    must(window, "RMR", v);
  }
  v->objects[5] = v->ia;
}

/* Returns 0 if no function of the one library accepts a handle of the other. */
static int refuses(const struct version* v, const struct version* other) {
  int failures = 0;
  for (const char* const* name = v->functions; *name; name++) {
    for (int i = 0; i < kObjects; i++) {
      const uint32_t found = CALL(v, Any, *name)(other->objects[i], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
      if ((found & kTypeMask) == kInvalidHandle) continue;
      fprintf(stderr, "%s's %s, object %d of %s: 0x%x\n", v->library, *name, i, other->library, found);
      failures++;
    }
  }
  return failures;
}

/* The library looks up a further argument among its own objects. */
static int refuses_further(const struct version* v, const struct version* other) {
  void* made = NULL;
  uint32_t found = CALL(v, EpCreate, "dat_ep_create")(v->ia, other->objects[0], NULL, NULL, NULL, NULL, &made);
  int failures = (found & kTypeMask) != kInvalidHandle;
  found = CALL(v, EpCreate, "dat_ep_create")(v->ia, v->objects[0], other->objects[1], NULL, NULL, NULL, &made);
  return failures + ((found & kTypeMask) != kInvalidHandle);
}

static int use_both(int first, int flags) {
  struct version versions[2] = {{"libdat.so.1", 1, 2, kFunctions12, NULL, NULL, {NULL}},
                                {"libdat2.so.2", 2, 0, kFunctions20, NULL, NULL, {NULL}}};
  struct version *one = &versions[first], *two = &versions[1 - first];
  open_version(one, flags);
  open_version(two, flags);
  int failures = refuses(one, two) + refuses(two, one) + refuses_further(one, two) + refuses_further(two, one);
  /* Neither library was affected. */
  must(CALL(one, Close, "dat_ia_close")(one->ia, kAbrupt), "close", one);
  must(CALL(two, Close, "dat_ia_close")(two->ia, kAbrupt), "close", two);
  /* Freed, they are still refused. */
  failures += refuses(one, two) + refuses(two, one);
  if (dlclose(one->loaded) || dlclose(two->loaded)) return 53;
  return failures ? 54 : 0;
}

static void expect_good(int first, int flags) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(use_both(first, flags));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void both__1_2_first(void** state) {
  (void)state;
  expect_good(0, RTLD_LOCAL);
  expect_good(0, RTLD_GLOBAL);
}

static void both__2_0_first(void** state) {
  (void)state;
  expect_good(1, RTLD_LOCAL);
  expect_good(1, RTLD_GLOBAL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both__1_2_first),
      cmocka_unit_test(both__2_0_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
