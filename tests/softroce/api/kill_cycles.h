/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

/* The two processes of the kill cycles: a survivor, and its peers, one after the other, which are killed. */
#include "tests/softroce/api/api.h"

enum phase {
  kAtOnce,       /* soon after its start, at any step */
  kBeforeAccept, /* the request has arrived and is not answered */
  kTransfer,     /* RDMA Writes both ways */
  kDisconnect,   /* one side, or both, have begun to disconnect */
  kPhases,
};

/* A peer's message on its standard output. */
struct message {
  char at; /* 'l' listening, 'r' has a request and does not answer, 'e' established, 'd' disconnecting */
  DAT_CONN_QUAL port;
};

/* The memory where the other side may write; it travels as private data. */
struct window {
  uint64_t address;
  uint32_t context;
};

#define WRITE_SIZE 65536U

/* The main function of a peer: program "peer" ROLE PHASE PORT. Does not return. */
void be_peer(char** arguments);

/* Both sides use an EP whose events all go to one EVD. */
DAT_EVD_HANDLE make_common_evd(struct fixture* f);
DAT_EP_HANDLE make_common_ep(struct fixture* f, DAT_EVD_HANDLE evd);
struct window window_of(const struct fixture* f);
DAT_RETURN write_to(struct fixture* f, DAT_EP_HANDLE ep, const struct window* there);
