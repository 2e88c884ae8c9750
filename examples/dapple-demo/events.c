/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "events.h"

#include <time.h>

#include "report.h"

/* The interval at which a wait checks that the peer is still connected. */
enum { kLookAroundUs = 200000 };

double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Records the connection's events without waiting. */
static void look_for_disconnection(struct session* session) {
  DAT_EVENT event;
  while (!session->peer_gone && dat_evd_dequeue(session->connection_evd, &event) == DAT_SUCCESS) {
    session->peer_gone = event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED;
  }
}

void await_event(struct session* session, DAT_EVD_HANDLE evd, const char* what, DAT_EVENT* event) {
  double deadline = now_s() + session->timeout_s;
  for (;;) {
    DAT_COUNT more = 0;
    DAT_RETURN result = dat_evd_wait(evd, kLookAroundUs, 1, event, &more);
    if (result == DAT_SUCCESS) {
      return;
    }
    if (DAT_GET_TYPE(result) != DAT_TIMEOUT_EXPIRED && DAT_GET_TYPE(result) != DAT_INTERRUPTED_CALL) {
      fail("dat_evd_wait for %s: %s", what, dat_name(result));
    }
    if (evd != session->connection_evd) {
      look_for_disconnection(session);
      /* The peer's last words may have arrived before it left. */
      if (session->peer_gone && dat_evd_dequeue(evd, event) == DAT_SUCCESS) {
        return;
      }
      if (session->peer_gone) {
        fail("the peer closed the connection or died while we waited for %s; see its output", what);
      }
    }
    if (now_s() >= deadline) {
      fail("gave up after %u s of waiting for %s; is the peer alive? (--timeout gives it longer)", session->timeout_s,
           what);
    }
  }
}

static const char* status_name(DAT_DTO_COMPLETION_STATUS status) {
  switch (status) {
    case DAT_DTO_SUCCESS:
      return "success";
    case DAT_DTO_ERR_FLUSHED:
      return "flushed, the peer closed the connection or died";
    case DAT_DTO_ERR_LOCAL_LENGTH:
      return "local length error";
    case DAT_DTO_ERR_LOCAL_EP:
      return "local endpoint error";
    case DAT_DTO_ERR_LOCAL_PROTECTION:
      return "local protection error";
    case DAT_DTO_ERR_BAD_RESPONSE:
      return "bad response";
    case DAT_DTO_ERR_REMOTE_ACCESS:
      return "the peer's memory refused the access";
    case DAT_DTO_ERR_REMOTE_RESPONDER:
      return "the peer's device failed";
    case DAT_DTO_ERR_TRANSPORT:
      return "the peer no longer answers";
    case DAT_DTO_ERR_RECEIVER_NOT_READY:
      return "the peer posted no receive";
    case DAT_DTO_ERR_PARTIAL_PACKET:
      return "partial packet";
    default:
      return "unknown status";
  }
}

segment_length await_completion(struct session* session, DAT_EVD_HANDLE evd, const char* what, DAT_DTO_COOKIE* cookie) {
  DAT_EVENT event;
  const DAT_DTO_COMPLETION_EVENT_DATA* completion = &event.event_data.dto_completion_event_data;
  await_event(session, evd, what, &event);
  if (event.event_number != DAT_DTO_COMPLETION_EVENT) {
    fail("%s: event 0x%x came instead; has the peer died?", what, (unsigned)event.event_number);
  }
  if (completion->status != DAT_DTO_SUCCESS) {
    fail("%s: %s (status %d)", what, status_name(completion->status), (int)completion->status);
  }
  if (cookie) {
    *cookie = completion->user_cookie;
  }
  return completion->transfered_length;
}

void await_connection(struct session* session, const char* whom) {
  DAT_EVENT event;
  await_event(session, session->connection_evd, "the connection", &event);
  switch (event.event_number) {
    case DAT_CONNECTION_EVENT_ESTABLISHED:
      return;
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
      fail("%s refused: the program that listens there is not a server of this program", whom);
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
      fail("%s: no server listens there; start 'dapple-demo server' first, with the same --port", whom);
    case DAT_CONNECTION_EVENT_UNREACHABLE:
      fail("%s cannot be reached; the address must be one of an RDMA device's network device", whom);
    case DAT_CONNECTION_EVENT_TIMED_OUT:
      fail("%s does not answer; is the machine up?", whom);
    default:
      fail("%s: no connection (event 0x%x)", whom, (unsigned)event.event_number);
  }
}

void await_disconnection(struct session* session) {
  DAT_EVENT event;
  while (!session->peer_gone) {
    await_event(session, session->connection_evd, "the end of the connection", &event);
    session->peer_gone = event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED;
  }
}
