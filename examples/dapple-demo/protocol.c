/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "protocol.h"

#include <endian.h>
#include <string.h>

#include "events.h"
#include "report.h"

/* A message on the wire: every number is big-endian, so that the two machines may differ. */
struct wire_message {
  uint32_t type;
  uint32_t rmr_context;
  uint64_t address;
  uint64_t length;
  uint64_t seed;
};
_Static_assert(sizeof(struct wire_message) == 32, "the peer expects 32 bytes");

/* Slots of the mailbox: one for each receive, and the last for the Send. */
enum { kSendSlot = kMaxReceives, kSlots, kSlotBytes = 64 };

static struct wire_message* slot_memory(struct mailbox* mailbox, unsigned slot) {
  return (struct wire_message*)(void*)(mailbox->region.memory + slot * kSlotBytes);
}

static void post_receive(struct mailbox* mailbox, unsigned slot) {
  DAT_LMR_TRIPLET segment = region_segment(&mailbox->region, slot * kSlotBytes, sizeof(struct wire_message));
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = slot;
  must(dat_ep_post_recv(mailbox->session->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv",
       "the receive queue should have had room");
}

void mailbox_open(struct mailbox* mailbox, struct session* session) {
  mailbox->session = session;
  mailbox->sending = 0;
  region_create(session, &mailbox->region, kSlots * kSlotBytes,
                DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
  for (unsigned slot = 0; slot < kMaxReceives; slot++) {
    post_receive(mailbox, slot);
  }
}

void mailbox_close(struct mailbox* mailbox) {
  region_free(&mailbox->region);
}

void send_message(struct mailbox* mailbox, const struct message* message) {
  struct wire_message* wire = slot_memory(mailbox, kSendSlot);
  DAT_LMR_TRIPLET segment = region_segment(&mailbox->region, kSendSlot * kSlotBytes, sizeof *wire);
  DAT_DTO_COOKIE cookie;
  wire->type = htobe32(message->type);
  wire->rmr_context = htobe32(message->rmr_context);
  wire->address = htobe64(message->address);
  wire->length = htobe64(message->length);
  wire->seed = htobe64(message->seed);
  cookie.as_64 = kSendSlot;
  must(dat_ep_post_send(mailbox->session->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send",
       "is the peer alive?");
  mailbox->sending = 1;
}

void settle_message(struct mailbox* mailbox) {
  if (mailbox->sending) {
    await_completion(mailbox->session, mailbox->session->request_evd, "the completion of a Send", NULL);
    mailbox->sending = 0;
  }
}

void receive_message(struct mailbox* mailbox, enum message_type type, enum message_type also, struct message* message) {
  DAT_DTO_COOKIE cookie;
  segment_length length =
      await_completion(mailbox->session, mailbox->session->receive_evd, "the peer's message", &cookie);
  if (length != sizeof(struct wire_message) || cookie.as_64 >= kMaxReceives) {
    fail("the peer's message has %u bytes instead of %zu; is it the same version of this program?", (unsigned)length,
         sizeof(struct wire_message));
  }
  const struct wire_message* wire = slot_memory(mailbox, (unsigned)cookie.as_64);
  message->type = be32toh(wire->type);
  message->rmr_context = be32toh(wire->rmr_context);
  message->address = be64toh(wire->address);
  message->length = be64toh(wire->length);
  message->seed = be64toh(wire->seed);
  post_receive(mailbox, (unsigned)cookie.as_64);
  if (message->type != type && message->type != also) {
    fail("message %d from the peer where %d was due; is it the same version of this program?", (int)message->type,
         (int)type);
  }
  if (message->type != kDone) {
    settle_message(mailbox);
  }
}
