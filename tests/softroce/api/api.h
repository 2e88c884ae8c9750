/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

/*
 * The common parts of the API tests: an open IA, memory registered with it, and two endpoints of this process connected
 * to each other through the real device. Nothing here is thread-local; each program has one thread unless it says
 * otherwise.
 */

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>
/* clang-format on */
#include <stdbool.h>

#include "tests/softroce/api/dat.h"

/* The entries of the guest's dat.conf. */
#define IA_NAME "ofa-v2-rxe"
#define IPV6_IA_NAME "ofa-v2-rxe6"

#define WAIT_US 60000000U /* for expected events; an emulated machine's clock may run several times too fast */
#define SOON_US 200000U   /* for events that must not come */

void check_status(DAT_RETURN found, DAT_RETURN expected, const char* what, const char* file, int line);
void check_class(DAT_RETURN found, DAT_RETURN expected, const char* what, const char* file, int line);

#define assert_ok(call) check_status((call), DAT_SUCCESS, #call, __FILE__, __LINE__)
/* Posts, and tries again while the queue is full: a device may be slow with requests that make no event. */
#define assert_posted(call)                                                                                       \
  do {                                                                                                            \
    DAT_RETURN posted_status;                                                                                     \
    int patience_ms = 20000;                                                                                      \
    while (DAT_GET_TYPE(posted_status = (call)) == DAT_INSUFFICIENT_RESOURCES && patience_ms-- > 0) usleep(1000); \
    check_status(posted_status, DAT_SUCCESS, #call, __FILE__, __LINE__);                                          \
  } while (0)
/* Compares class, type and subtype. */
#define assert_error(call, type, subtype) \
  check_status((call), DAT_CLASS_ERROR | (DAT_RETURN)(type) | (DAT_RETURN)(subtype), #call, __FILE__, __LINE__)
/* For cases in which the specification leaves the subtype open. */
#define assert_error_type(call, type) \
  check_class((call), DAT_CLASS_ERROR | (DAT_RETURN)(type), #call, __FILE__, __LINE__)

#define MEMORY_SIZE (4U << 20)
#define HALF (2U << 20) /* tests send from the first half to the second */

struct end {
  DAT_EP_HANDLE ep;
  DAT_EVD_HANDLE recv;
  DAT_EVD_HANDLE request;
  DAT_EVD_HANDLE connect;
};

struct fixture {
  DAT_IA_HANDLE ia;
  DAT_EVD_HANDLE async;
  DAT_IA_ATTR attr;
  DAT_PROVIDER_ATTR provider;
  DAT_PZ_HANDLE pz;

  unsigned char* memory; /* MEMORY_SIZE bytes, registered with all privileges */
  DAT_LMR_HANDLE lmr;
  DAT_LMR_CONTEXT lmr_context;
  DAT_RMR_CONTEXT rmr_context;

  struct end active;
  struct end passive;
  DAT_EVD_HANDLE requests; /* of connections */
  DAT_PSP_HANDLE psp;
  DAT_CONN_QUAL port;
};

/*
 * For cmocka: state points to a fixture. The first has an IA and memory, the second also two ends, the third connected
 * ends.
 */
int set_up_ia(void** state);
int set_up_named_ia(void** state, const char* name);
int set_up_ends(void** state);
int set_up_connected(void** state);
int tear_down(void** state);

void open_ia(struct fixture* f, const char* name);
void register_memory(struct fixture* f);
/* attr may be NULL. */
void make_end(struct fixture* f, struct end* end, const DAT_EP_ATTR* attr);
void free_end(struct end* end);
void listen_any(struct fixture* f);
/* Starts a connection from an end to f's service point. */
void begin_connect(struct fixture* f, struct end* end, const void* data, DAT_COUNT size);
DAT_CR_HANDLE take_request(struct fixture* f);
/* Connects the two ends; both are ESTABLISHED when it returns. */
void connect_ends(struct fixture* f);
/* Ends that connection. */
void disconnect_ends(struct fixture* f, DAT_CLOSE_FLAGS flags);
/* Makes both UNCONNECTED again. */
void reset_ends(struct fixture* f);

/*
 * True if the device is software iWARP, which has no windows, atomics, immediate data, datagrams and zero-based
 * regions: tests of these are skipped there, and iwarp_test.c checks that they are refused.
 */
bool on_iwarp(void);
#define SKIP_ON_IWARP()     \
  do {                      \
    if (on_iwarp()) skip(); \
  } while (0)

/* True on dapple's software device, which the kernel does not know. */
bool on_software_device(void);

/*
 * Waits for the end of a connection whose request was refused. If the peer noticed first, an end may get the peer's
 * disconnect instead.
 */
void expect_end(const struct end* end);

/* True if the device is treated as non-coherent, because of DAPPLE_COHERENCE or the emulator. */
bool needs_sync(void);
/*
 * Syncs f's memory as a consumer must: before a peer reads memory that was written here; and before and after a peer
 * writes to memory that was written here.
 */
void sync_for_read(const struct fixture* f, size_t offset, size_t length);
void sync_for_write(const struct fixture* f, size_t offset, size_t length);

/* The next event, which must have this number. */
DAT_EVENT expect_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
/* The next event, which must be a completion with this cookie, operation and status. */
DAT_DTO_COMPLETION_EVENT_DATA expect_dto(DAT_EVD_HANDLE evd, uint64_t cookie, DAT_DTOS operation,
                                         DAT_DTO_COMPLETION_STATUS status);
/*
 * Returns when the data of the active end's completed Writes is in the peer's memory. On iWARP the completion of a
 * Write says only that the source may be used again (RFC 5040). An RDMA Read of the same connection completes later.
 */
void expect_placed(const struct fixture* f);
/* The same after the completion of a Write of the active end, which it returns. */
DAT_DTO_COMPLETION_EVENT_DATA expect_written(const struct fixture* f, uint64_t number);
/*
 * On iWARP, for a Write or Send that the peer refuses: it completes when it has been sent (RFC 5040). If the refusal
 * ends the stream before siw has handled that, siw reports a local error.
 */
void expect_sent(DAT_EVD_HANDLE evd, uint64_t cookie, DAT_DTOS operation);
void expect_nothing(DAT_EVD_HANDLE evd);
DAT_EP_STATE state_of(DAT_EP_HANDLE ep);
ONLY_20(/* One of the extensions' counters of an IA, EP or EVD. */
        uint64_t counter(DAT_HANDLE handle, int number);)

DAT_LMR_TRIPLET local(const struct fixture* f, size_t offset, size_t length);
DAT_RMR_TRIPLET remote(const struct fixture* f, size_t offset, size_t length);
DAT_DTO_COOKIE cookie(uint64_t number);

void fill(unsigned char* at, size_t size, unsigned int seed);
bool is_filled(const unsigned char* at, size_t size, unsigned int seed);
bool is_all(const unsigned char* at, size_t size, unsigned char value);

#define RUN_TESTS(tests) cmocka_run_group_tests(tests, NULL, NULL)
#define IA_TEST(test) cmocka_unit_test_setup_teardown(test, set_up_ia, tear_down)
#define ENDS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up_ends, tear_down)
#define CONNECTED_TEST(test) cmocka_unit_test_setup_teardown(test, set_up_connected, tear_down)
