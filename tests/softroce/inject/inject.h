/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

/*
 * libinject is found before libibverbs, librdmacm and the C library, and sees the calls that our libraries make; other
 * calls pass unchanged. It knows the path through our libraries that led to each call, so that it finds a place again
 * in any order of threads.
 *
 * Threads: internally locked.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NULLS(name, ...) CALL_##name,
#define MINUS(name, ...) CALL_##name,
#define GIVES(name, ...) CALL_##name,
#define INLINE(name, ...) CALL_##name,
#define BY_HAND(name, ...) CALL_##name,
#define NEVER(name) CALL_##name,
enum inject_call {
#include "tests/softroce/inject/calls.def"
  CALLS
};
#undef NULLS
#undef MINUS
#undef GIVES
#undef INLINE
#undef BY_HAND
#undef NEVER

enum inject_kind { NOTHING, PD, CHANNEL, CQ, QP, SRQ, MR, MW, AH, EVENT_CHANNEL, CM_ID, BLOCK, KINDS };

enum { kMaxErrors = 4, kMaxFrames = 10 };

struct inject_frame {
  const char* library;
  uintptr_t offset;
};

/* A path through our libraries to a call. */
struct inject_place {
  enum inject_call call;
  uint32_t path;
  struct inject_frame frames[kMaxFrames]; /* in our libraries, innermost first; library is NULL after the last */
};

const char* inject_name(enum inject_call call);
/* The errors to fail a call with, 0 after the last; empty for a call that never fails. */
const int* inject_errors(enum inject_call call);
const char* inject_kind_name(enum inject_kind kind);

/* From now on it remembers places, and nothing fails. */
void inject_watch(void);
/* The first call at this place fails. */
void inject_arm(enum inject_call call, uint32_t path, int error);
/* Stops remembering, and lets calls succeed again. */
void inject_off(void);

/* Tells whether the armed call has failed, and on which thread. */
enum inject_fired { kNotFired, kFiredOnMain, kFiredElsewhere };
enum inject_fired inject_fired(void);

size_t inject_places(void);
struct inject_place inject_place_at(size_t index);

/* The number of objects of that kind that our libraries have made and not released. */
long inject_count(enum inject_kind kind);

/* For the wrappers. The error to fail with, 0 to go on, or -1 if the caller does not belong to us. */
int inject_hit(enum inject_call call, void* caller);
void inject_change(enum inject_kind kind, long change);

#ifdef __cplusplus
}
#endif
