/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#include "tests/softroce/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kAsyncQueue = 8, kMaxProviders = 128, kQueue = 4 };

static const char* speaking_role = "test";

void set_role(const char* role) {
  speaking_role = role;
}

void fail(const char* format, ...) {
  va_list arguments;
  fflush(stdout);
  fprintf(stderr, "%s: ", speaking_role);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

void must(DAT_RETURN result, const char* call) {
  const char* type = "?";
  const char* subtype = "?";
  if (result == DAT_SUCCESS) {
    return;
  }
  (void)dat_strerror(result, &type, &subtype);
  fail("%s: %s %s", call, type, subtype);
}

static void open_first_ia(struct session* session) {
  static DAT_PROVIDER_INFO infos[kMaxProviders];
  DAT_PROVIDER_INFO* list[kMaxProviders];
  DAT_COUNT listed = 0;
  for (int i = 0; i < kMaxProviders; i++) {
    list[i] = &infos[i];
  }
  must(dat_registry_list_providers(kMaxProviders, &listed, list), "dat_registry_list_providers");
  for (DAT_COUNT i = 0; i < listed; i++) {
    if (infos[i].dapl_version_major != DAT_VERSION_MAJOR || infos[i].is_thread_safe) {
      continue;
    }
    session->async_evd = DAT_HANDLE_NULL;
    if (dat_ia_open(infos[i].ia_name, kAsyncQueue, &session->async_evd, &session->ia) == DAT_SUCCESS) {
      return;
    }
  }
  fail("none of the %d interface adapters opens", (int)listed);
}

static DAT_EVD_HANDLE create_evd(struct session* session, DAT_EVD_FLAGS flags) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  must(dat_evd_create(session->ia, kQueue, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create");
  return evd;
}

void session_open(struct session* session, unsigned timeout_s) {
  memset(session, 0, sizeof *session);
  session->timeout_s = timeout_s;
  open_first_ia(session);
  must(dat_pz_create(session->ia, &session->pz), "dat_pz_create");
  session->request_evd = create_evd(session, DAT_EVD_DTO_FLAG);
  session->receive_evd = create_evd(session, DAT_EVD_DTO_FLAG);
  session->connection_evd = create_evd(session, DAT_EVD_CONNECTION_FLAG);
  must(dat_ep_create(session->ia, session->pz, session->receive_evd, session->request_evd, session->connection_evd,
                     NULL, &session->ep),
       "dat_ep_create");
}

void session_close(struct session* session) {
  must(dat_ep_free(session->ep), "dat_ep_free");
  must(dat_evd_free(session->connection_evd), "dat_evd_free");
  must(dat_evd_free(session->receive_evd), "dat_evd_free");
  must(dat_evd_free(session->request_evd), "dat_evd_free");
  must(dat_pz_free(session->pz), "dat_pz_free");
  must(dat_ia_close(session->ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close");
}

void await_event(struct session* session, DAT_EVD_HANDLE evd, const char* what, DAT_EVENT* event) {
  DAT_COUNT more = 0;
  const DAT_RETURN result = dat_evd_wait(evd, session->timeout_s * 1000000, 1, event, &more);
  if (DAT_GET_TYPE(result) == DAT_TIMEOUT_EXPIRED) {
    fail("gave up after %u s of waiting for %s", session->timeout_s, what);
  }
  must(result, "dat_evd_wait");
}

void await_connection(struct session* session) {
  DAT_EVENT event;
  await_event(session, session->connection_evd, "the connection", &event);
  if (event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED) {
    fail("no connection (event 0x%x)", (unsigned)event.event_number);
  }
}

void await_disconnection(struct session* session) {
  DAT_EVENT event;
  await_event(session, session->connection_evd, "the end of the connection", &event);
  if (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED && event.event_number != DAT_CONNECTION_EVENT_BROKEN) {
    fail("event 0x%x instead of the end of the connection", (unsigned)event.event_number);
  }
}
