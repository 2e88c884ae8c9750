/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * A session lets a test's program connect: it has an open IA with an EP, and no wait takes longer than its time-out. An
 * error ends the program with one line on stderr. One thread uses a session.
 */
#pragma once

#include <dat2/udat.h>

struct session {
  unsigned timeout_s; /* the longest wait for the peer */
  DAT_IA_HANDLE ia;
  DAT_EVD_HANDLE async_evd;
  DAT_PZ_HANDLE pz;
  DAT_EVD_HANDLE request_evd;
  DAT_EVD_HANDLE receive_evd;
  DAT_EVD_HANDLE connection_evd; /* the connection's events */
  DAT_EP_HANDLE ep;
};

/* The program's name, which starts every line. */
void set_role(const char* role);
_Noreturn void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program unless RESULT, of the function CALL, is DAT_SUCCESS. */
void must(DAT_RETURN result, const char* call);

/* Opens the first IA of dat.conf that opens, and makes the session's objects. */
void session_open(struct session* session, unsigned timeout_s);
void session_close(struct session* session);

/* Waits until EVD has an event. WHAT names it in the line that ends the program if the time passes. */
void await_event(struct session* session, DAT_EVD_HANDLE evd, const char* what, DAT_EVENT* event);
void await_connection(struct session* session);
void await_disconnection(struct session* session);
