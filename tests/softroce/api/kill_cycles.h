/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_TESTS_SOFTROCE_KILL_CYCLES_H
#define DAPPLE_TESTS_SOFTROCE_KILL_CYCLES_H

/* The two processes of the kill cycles: a survivor, and its peers, one after the other, which are killed. */
#include "tests/softroce/api/api.h"

enum phase {
  kAtOnce,       /* soon after its start, wherever it is */
  kBeforeAccept, /* the request is there and not answered */
  kTransfer,     /* RDMA Writes both ways */
  kDisconnect,   /* one side, or both, have begun to disconnect */
  kPhases,
};

/* What a peer says through its standard output, one message at a time. */
struct message {
  char at; /* 'l' listening, 'r' has a request and does not answer, 'e' established, 'd' disconnecting */
  DAT_CONN_QUAL port;
};

/* Where the other side may write; travels as private data. */
struct window {
  uint64_t address;
  uint32_t context;
};

#define WRITE_SIZE 65536U

/* The life of a peer: program "peer" ROLE PHASE PORT. Does not return. */
void be_peer(char** arguments);

/* What both do: an EP whose events all go to one EVD. */
DAT_EVD_HANDLE make_common_evd(struct fixture* f);
DAT_EP_HANDLE make_common_ep(struct fixture* f, DAT_EVD_HANDLE evd);
struct window window_of(const struct fixture* f);
DAT_RETURN write_to(struct fixture* f, DAT_EP_HANDLE ep, const struct window* there);

#endif
