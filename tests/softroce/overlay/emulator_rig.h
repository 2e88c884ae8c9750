/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/*
 * The rig of the emulator's tests: a queue pair of plain verbs that is connected to itself, in whose transfers the
 * device works on shadows. The rig reads the emulator's messages on standard error.
 */
#pragma once

#include <infiniband/dappledv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { kPage = 4096, kSize = 4 * kPage, kInline = 64, kPatienceS = 60 };
enum {
  kWindowless = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
  kAccess = kWindowless | IBV_ACCESS_MW_BIND,
};

extern struct ibv_device** devices; /* the first is used */
extern struct ibv_context* context;
extern struct ibv_pd* pd;
extern struct ibv_cq* cq;
extern struct ibv_srq* srq;
extern struct ibv_qp* qp;
extern unsigned char *mine, *theirs;    /* kSize bytes each, in regions of their own */
extern struct ibv_mr *my_mr, *their_mr; /* a test that deregisters one must set it to null */

/* Set-up and tear-down of each test. */
int set_up(void** state);
int tear_down(void** state);

/* The text on standard error between these two calls is then in `said`. */
void begin_listening(void);
void end_listening(void);
extern char said[4096];
/*
 * Deregisters a region and returns the result; `said` has the messages about it. Afterwards its memory is registered
 * again, as if for another use.
 */
int deregister(struct ibv_mr* mr);
bool says(const char* text);
int times(const char* text);
enum finding_kind { kUnsynced, kUnclean, kLost };
/* The line about it. */
const char* finding(const void* address, size_t length, int count, size_t offset, enum finding_kind kind);

void for_device(const void* at, size_t length);
void for_cpu(const void* at, size_t length);
bool is_all(const unsigned char* at, size_t length, unsigned char value);

/* A segment of my_mr. */
struct ibv_sge segment(const void* at, uint32_t length);
/* Posts signalled requests; sge may be null. */
void post(struct ibv_send_wr* request, struct ibv_sge* sge);
enum ibv_wc_status completion(enum ibv_wc_opcode opcode);
/* An RDMA Write of memory as the device sees it; flags for inline data. */
void write_as_it_is(const void* from, uint32_t length, uint64_t to, uint32_t rkey, unsigned int flags);
/* The device writes bytes of this value. */
void device_writes(unsigned char value, uint32_t length, uint64_t to, uint32_t rkey);
