/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Recognises our libraries' calls and the places that they come from, and selects the one that fails. The wrappers are
 * in wrappers.c.
 */
#include "tests/softroce/inject/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NULLS(name, type, parameters, arguments, kind, change, ...) {#name, {__VA_ARGS__}},
#define MINUS(name, parameters, arguments, kind, change, ...) {#name, {__VA_ARGS__}},
#define GIVES(name, parameters, arguments, kind, change, ...) {#name, {__VA_ARGS__}},
#define INLINE(name, ...) {#name, {__VA_ARGS__}},
#define BY_HAND(name, ...) {#name, {__VA_ARGS__}},
#define NEVER(name) {#name, {0}},
static const struct {
  const char* name;
  int errors[kMaxErrors];
} calls[] = {
#include "tests/softroce/inject/calls.def"
};

static const char* const kind_names[] = {"",   "PD", "completion channel", "CQ",    "QP",   "SRQ", "MR",
                                         "MW", "AH", "event channel",      "CM id", "block"};

enum { kMaxPlaces = 4096, kDepth = 40 };
enum mode { kOff, kWatch, kArmed };

static _Atomic enum mode mode;
static _Atomic int fired;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct inject_place places[kMaxPlaces];
static size_t used;
static struct inject_place target;
static int target_error;
static atomic_long counts[KINDS];
/* Allocations of unwinding belong to no library. */
static _Thread_local bool busy;

/* The first call loads the unwinder, which allocates. */
__attribute__((constructor)) static void prepare(void) {
  void* frame;
  backtrace(&frame, 1);
}

EXPORT const char* inject_name(enum inject_call call) {
  return calls[call].name;
}
EXPORT const int* inject_errors(enum inject_call call) {
  return calls[call].errors;
}
EXPORT const char* inject_kind_name(enum inject_kind kind) {
  return kind_names[kind];
}
EXPORT long inject_count(enum inject_kind kind) {
  return atomic_load(&counts[kind]);
}
EXPORT void inject_change(enum inject_kind kind, long change) {
  atomic_fetch_add(&counts[kind], change);
}
EXPORT enum inject_fired inject_fired(void) {
  return (enum inject_fired)atomic_load(&fired);
}
EXPORT size_t inject_places(void) {
  return used;
}
EXPORT struct inject_place inject_place_at(size_t index) {
  return places[index];
}
EXPORT void inject_off(void) {
  atomic_store(&mode, kOff);
}

EXPORT void inject_watch(void) {
  pthread_mutex_lock(&mutex);
  used = 0;
  atomic_store(&fired, kNotFired);
  atomic_store(&mode, kWatch);
  pthread_mutex_unlock(&mutex);
}

EXPORT void inject_arm(enum inject_call call, uint32_t path, int error) {
  pthread_mutex_lock(&mutex);
  target.call = call;
  target.path = path;
  target_error = error;
  atomic_store(&fired, kNotFired);
  atomic_store(&mode, kArmed);
  pthread_mutex_unlock(&mutex);
}

/* The library of ours that has this address, by its file's name; NULL for all others. */
static const char* our_library(void* address, uintptr_t* offset) {
  struct dl_find_object found;
  const char* name;
  if (_dl_find_object(address, &found) != 0 || !found.dlfo_link_map->l_name) return NULL;
  name = strrchr(found.dlfo_link_map->l_name, '/');
  name = name ? name + 1 : found.dlfo_link_map->l_name;
  if (strncmp(name, "libdapl", 7) != 0 && strncmp(name, "libdat2.", 8) != 0 && strncmp(name, "libdapple.", 10) != 0)
    return NULL;
  *offset = (uintptr_t)address - found.dlfo_link_map->l_addr;
  return name;
}

static struct inject_place here(enum inject_call call) {
  struct inject_place place = {call, 2166136261U, {{NULL, 0}}};
  void* frames[kDepth];
  const int depth = backtrace(frames, kDepth);
  int kept = 0;
  for (int i = 0; i < depth; ++i) {
    uintptr_t offset;
    const char* library = our_library(frames[i], &offset);
    if (!library) continue;
    place.path = (place.path ^ (uint32_t)offset) * 16777619U;
    place.path = (place.path ^ (uint32_t)library[5]) * 16777619U;
    if (kept < kMaxFrames) place.frames[kept++] = (struct inject_frame){library, offset};
  }
  return place;
}

static void remember(const struct inject_place* place) {
  for (size_t i = 0; i < used; ++i) {
    if (places[i].call == place->call && places[i].path == place->path) return;
  }
  if (used < kMaxPlaces) places[used++] = *place;
}

EXPORT int inject_hit(enum inject_call call, void* caller) {
  const enum mode now = atomic_load(&mode);
  const int saved = errno;
  uintptr_t offset;
  int error = 0;
  if (busy || !our_library(caller, &offset)) return -1;
  if (now == kOff || (now == kArmed && (call != target.call || atomic_load(&fired)))) return 0;
  busy = true;
  const struct inject_place place = here(call);
  busy = false;
  pthread_mutex_lock(&mutex);
  if (atomic_load(&mode) == kWatch) remember(&place);
  if (atomic_load(&mode) == kArmed && place.call == target.call && place.path == target.path && !atomic_load(&fired)) {
    atomic_store(&fired, getpid() == syscall(SYS_gettid) ? kFiredOnMain : kFiredElsewhere);
    error = target_error;
  }
  pthread_mutex_unlock(&mutex);
  errno = saved;
  return error;
}
