/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_TESTS_SOFTROCE_INJECT_H
#define DAPPLE_TESTS_SOFTROCE_INJECT_H

/*
 * libinject stands before libibverbs, librdmacm and the C library in the order in which symbols are found, and sees the
 * calls that our libraries make; nobody else's are touched. Of each call it knows the path that led to it through our
 * libraries, so that a place is found again whatever order threads run in.
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
  struct inject_frame frames[kMaxFrames]; /* of our libraries, innermost first; library NULL after the last */
};

const char* inject_name(enum inject_call call);
/* The errors to fail a call with, 0 after the last; none for one that is never failed. */
const int* inject_errors(enum inject_call call);
const char* inject_kind_name(enum inject_kind kind);

/* From here on places are remembered, and nothing fails. */
void inject_watch(void);
/* The first call at this place fails. */
void inject_arm(enum inject_call call, uint32_t path, int error);
/* Neither. */
void inject_off(void);

enum inject_fired { kNotFired, kFiredOnMain, kFiredElsewhere };
enum inject_fired inject_fired(void);

size_t inject_places(void);
struct inject_place inject_place_at(size_t index);

/* Objects of that kind that our libraries have and have not given back. */
long inject_count(enum inject_kind kind);

/* For the wrappers. The error to fail with, 0 to go on, or -1 when the caller is not ours. */
int inject_hit(enum inject_call call, void* caller);
void inject_change(enum inject_kind kind, long change);

#ifdef __cplusplus
}
#endif

#endif
