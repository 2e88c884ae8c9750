/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* The passive side: it exposes a buffer, and the client's Sends report what the client has done to it. */
#include "server.h"

#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "events.h"
#include "pattern.h"
#include "protocol.h"
#include "report.h"

static void announce(const struct session* session, const struct server_options* options) {
  const struct sockaddr* address = session->ia_attr.ia_address_ptr;
  socklen_t length = address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  char text[NI_MAXHOST];
  if (getnameinfo(address, length, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0) {
    fail("%s has no IP address; add one to its network device (ip addr add)", session->ia_name);
  }
  if (options->address_fd < 0) {
    printf("%s listens on %s port %u; now run: dapple-demo client %s\n", session->ia_name, text,
           (unsigned)options->port, text);
    fflush(stdout);
  } else if (dprintf(options->address_fd, "%s\n", text) < 0) {
    fail("the client is gone");
  }
}

static int greeted_rightly(const DAT_CR_PARAM* request) {
  return request->private_data_size >= (DAT_COUNT)sizeof DEMO_GREETING &&
         memcmp(request->private_data, DEMO_GREETING, sizeof DEMO_GREETING) == 0;
}

/* Waits for a connection request of this program's client, and accepts it. Others are refused. */
static void accept_client(struct session* session, DAT_EVD_HANDLE request_evd) {
  for (;;) {
    DAT_EVENT event;
    DAT_CR_PARAM request;
    await_event(session, request_evd, "a client", &event);
    if (event.event_number != DAT_CONNECTION_REQUEST_EVENT) {
      fail("event 0x%x instead of a connection request", (unsigned)event.event_number);
    }
    DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;
    must(dat_cr_query(cr, DAT_CR_FIELD_ALL, &request), "dat_cr_query", "the request should have been there");
    if (greeted_rightly(&request)) {
      must(dat_cr_accept(cr, session->ep, 0, NULL), "dat_cr_accept", "is the client gone?");
      return;
    }
    must(reject(cr), "dat_cr_reject", "is the client gone?");
  }
}

/* The range that the client names, as a segment of the buffer; it must lie inside, with its guards. */
static DAT_LMR_TRIPLET range_of(const struct region* buffer, const struct message* written) {
  uint64_t start = (uint64_t)(size_t)buffer->memory;
  if (written->length > buffer->length || written->address < start + kGuardBytes ||
      written->address - start > buffer->length - written->length - kGuardBytes) {
    fail("the client names %" PRIu64 " bytes outside of the buffer; is it the same version of this program?",
         written->length);
  }
  return region_segment(buffer, (size_t)(written->address - start), (size_t)written->length);
}

static void serve_range(struct session* session, struct region* buffer, const struct message* written,
                        struct mailbox* mailbox) {
  DAT_LMR_TRIPLET range = range_of(buffer, written);
  unsigned char* at = (unsigned char*)(size_t)range.virtual_address;
  struct message changed = {.type = kChanged};

  /* The device wrote: make its data visible to this CPU, then read it. */
  must(dat_lmr_sync_rdma_write(session->ia, &range, 1), "dat_lmr_sync_rdma_write", "the range is inside of the LMR");
  pattern_must_match(at, range.segment_length, written->seed, 0, "after the client's RDMA Write");

  /* This CPU wrote: make its data visible to the device, then let the client read it. */
  pattern_invert(at, range.segment_length);
  must(dat_lmr_sync_rdma_read(session->ia, &range, 1), "dat_lmr_sync_rdma_read", "the range is inside of the LMR");
  send_message(mailbox, &changed);
}

static void clear_range(struct session* session, struct region* buffer, const struct message* written) {
  DAT_LMR_TRIPLET range = range_of(buffer, written);
  /*
   * This CPU writes to memory that the device may write to next. No cache may keep a line of it until then, because the
   * line could later be written back over the device's data. dat_lmr_sync_rdma_write does this as well.
   */
  memset((unsigned char*)(size_t)range.virtual_address, kGuardValue, range.segment_length);
  must(dat_lmr_sync_rdma_write(session->ia, &range, 1), "dat_lmr_sync_rdma_write", "the range is inside of the LMR");
}

/* Serves ranges until the client reports that it is done. */
static void serve_client(struct session* session, struct region* buffer, struct mailbox* mailbox) {
  struct message ready = {.type = kReady,
                          .rmr_context = buffer->rmr_context,
                          .address = (uint64_t)(size_t)buffer->memory,
                          .length = buffer->length};
  struct message next;
  receive_message(mailbox, kNext, kNext, &next);
  for (;;) {
    struct message said;
    send_message(mailbox, &ready);
    receive_message(mailbox, kWritten, kDone, &said);
    if (said.type == kDone) {
      return;
    }
    serve_range(session, buffer, &said, mailbox);
    receive_message(mailbox, kNext, kNext, &next);
    clear_range(session, buffer, &said);
  }
}

void run_server(const struct server_options* options) {
  struct session session;
  struct mailbox mailbox;
  struct region buffer;
  DAT_EVD_HANDLE request_evd = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;

  session_open(&session, options->ia_name, options->timeout_s);
  mailbox_open(&mailbox, &session);
  region_create(&session, &buffer, 2 * kGuardBytes + kMaxOffset + options->largest_size,
                DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG |
                    DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
  memset(buffer.memory, kGuardValue, buffer.length);
  DAT_LMR_TRIPLET whole = region_segment(&buffer, 0, buffer.length);
  must(dat_lmr_sync_rdma_write(session.ia, &whole, 1), "dat_lmr_sync_rdma_write", "it is the whole LMR");

  must(dat_evd_create(session.ia, 4, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &request_evd), "dat_evd_create",
       "out of memory?");
  must(dat_psp_create(session.ia, options->port, request_evd, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create",
       "another server may have this port: choose one with --port");
  announce(&session, options);

  accept_client(&session, request_evd);
  await_connection(&session, "the client");
  serve_client(&session, &buffer, &mailbox);
  await_disconnection(&session);

  must(dat_psp_free(psp), "dat_psp_free", "the service point should have been idle");
  must(dat_evd_free(request_evd), "dat_evd_free", "the EVD should have been idle");
  session_free_endpoint(&session);
  region_free(&buffer);
  mailbox_close(&mailbox);
  session_close(&session);
}
