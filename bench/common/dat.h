/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * Two connected endpoints of one process over uDAPL. A program that includes this links libdat2, and runs on our
 * library and on the original. An error ends the program with a line.
 */
#pragma once

#include <dat2/udat.h>

#include "bench/common/check.h"

#define WAIT_US 60000000U

__attribute__((cold)) void must(DAT_RETURN status, const char* what);

struct ia {
  DAT_IA_HANDLE handle;
  DAT_PZ_HANDLE pz;
  DAT_IA_ADDRESS_PTR address;
};

struct ia open_ia(const char* name);
void close_ia(const struct ia* ia);

DAT_EVD_HANDLE make_evd(const struct ia* ia, DAT_COUNT length, DAT_EVD_FLAGS flags);
/* Sleeps until the next event, which must have this number. */
DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);

struct end {
  DAT_EP_HANDLE ep;
  DAT_EVD_HANDLE recv;
  DAT_EVD_HANDLE request;
  DAT_EVD_HANDLE connect;
};

/* With an EP for messages of up to `size` bytes and `depth` requests at a time. */
struct end make_end(const struct ia* ia, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
                    DAT_VLEN size, DAT_COUNT depth);

struct listener {
  DAT_EVD_HANDLE requests;
  DAT_PSP_HANDLE psp;
  DAT_CONN_QUAL port;
};

struct listener listen_here(const struct ia* ia);
void connect_ends(const struct ia* ia, const struct listener* here, const struct end* front, const struct end* back);
/* Abruptly. Frees both EPs. */
void disconnect_ends(const struct end* front, const struct end* back);

struct region {
  DAT_LMR_HANDLE lmr;
  DAT_LMR_TRIPLET local;
  DAT_RMR_TRIPLET remote;
};

/* Registers memory. The triplets describe its first `length` bytes. */
struct region make_region(const struct ia* ia, void* memory, size_t size, DAT_VLEN length);
