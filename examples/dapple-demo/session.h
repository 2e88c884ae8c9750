/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The common objects of both sides: an open Interface Adapter (IA) with one Endpoint (EP), the Event Dispatchers (EVDs)
 * on which its events arrive, and a Protection Zone (PZ) for the memory that it may use. One thread uses a session.
 */
#pragma once

#include <stddef.h>

#include "api.h"

/* Requests and receives that may be outstanding at once. */
enum { kMaxRequests = 8, kMaxReceives = 4 };

struct session {
  const char* ia_name;
  unsigned timeout_s; /* the longest wait for the peer */
  DAT_IA_HANDLE ia;
  DAT_EVD_HANDLE async_evd;
  DAT_PZ_HANDLE pz;
  DAT_EVD_HANDLE request_evd;    /* completions of Sends, RDMA Writes and RDMA Reads */
  DAT_EVD_HANDLE receive_evd;    /* completions of receives */
  DAT_EVD_HANDLE connection_evd; /* the connection's events */
  DAT_EP_HANDLE ep;
  DAT_IA_ATTR ia_attr;
  DAT_PROVIDER_ATTR provider_attr;
  int peer_gone;
};

/* Memory that the device may use. */
struct region {
  unsigned char* memory; /* on a page boundary */
  size_t length;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_CONTEXT lmr_context; /* names it in this side's requests */
  DAT_RMR_CONTEXT rmr_context; /* names it in the peer's requests */
};

/* Opens the IA called IA_NAME or, for NULL, the first registered one that opens, and makes the session's objects. */
void session_open(struct session* session, const char* ia_name, unsigned timeout_s);

/* The first step of the end: destroys the EP with the posted receives, so that their memory can be freed. */
void session_free_endpoint(struct session* session);

/* The last step: frees the other objects and closes the IA. Every region must have been freed. */
void session_close(struct session* session);

/* Allocates and registers memory. PRIVILEGES are the access rights of this side and the peer. */
void region_create(struct session* session, struct region* region, size_t length, DAT_MEM_PRIV_FLAGS privileges);
void region_free(struct region* region);

/* LENGTH bytes at OFFSET of REGION, as a uDAPL segment. */
DAT_LMR_TRIPLET region_segment(const struct region* region, size_t offset, size_t length);
