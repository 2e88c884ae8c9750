/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * What the two halves say to each other by Send, strictly in turn. The client begins, as iWARP wants it:
 *
 *   client  NEXT
 *   server  READY    the buffer's address, length and RMR context
 *   client           RDMA Writes a pattern into a range of the buffer
 *   client  WRITTEN  the range and the pattern's seed
 *   server           checks every byte, inverts every byte
 *   server  CHANGED
 *   client           RDMA Reads the range and checks every byte
 *
 * and so on from NEXT to READY, which the client answers with DONE when it has no more ranges; then it disconnects.
 *
 * An answer shows that what it answers has arrived, so each half waits for the completion of its Send only then. The
 * server never does for the last READY: the client may be gone before the server's device hears that it came, and the
 * Send is flushed.
 */
#pragma once

#include <stdint.h>

#include "session.h"

enum { kDefaultPort = 18420 };

/* The private data of a connection request: a server recognises the clients of this program by it. */
#define DEMO_GREETING "dapple-demo 2"

/* Bytes on each side of a range that must stay unchanged: two cache lines of the largest size in use. */
enum { kGuardBytes = 256 };
static const unsigned char kGuardValue = 0x5a;

/* A range starts at most this many bytes after a page boundary and the guard. */
enum { kMaxOffset = 63 };
static const uint64_t kLargestSize = 16u << 20;

enum message_type { kReady = 1, kWritten, kChanged, kNext, kDone };

struct message {
  enum message_type type;
  uint32_t rmr_context; /* READY */
  uint64_t address;     /* READY: of the buffer; WRITTEN: of the range */
  uint64_t length;      /* likewise */
  uint64_t seed;        /* WRITTEN */
};

/* The memory for messages. */
struct mailbox {
  struct session* session;
  struct region region;
  int sending; /* a Send whose completion was not taken yet */
};

/*
 * Registers the memory and posts the receives. uDAPL allows receives before there is a connection, and an early message
 * needs them.
 */
void mailbox_open(struct mailbox* mailbox, struct session* session);
void mailbox_close(struct mailbox* mailbox);

/* Sends a message. The message before it must have been answered or settled. */
void send_message(struct mailbox* mailbox, const struct message* message);

/* Waits until the peer has the last message. */
void settle_message(struct mailbox* mailbox);

/*
 * Waits for a message of type TYPE or ALSO; any other ends the program. Unless the message is DONE, this settles our
 * Send.
 */
void receive_message(struct mailbox* mailbox, enum message_type type, enum message_type also, struct message* message);
