/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* Waiting for events, never longer than the session's time-out and never for a peer that has left. */
#pragma once

#include "session.h"

/*
 * Waits until EVD has an event. Ends the program with a line that names WHAT was awaited if the time-out passes or,
 * once the connection is established, if it breaks.
 */
void await_event(struct session* session, DAT_EVD_HANDLE evd, const char* what, DAT_EVENT* event);

/* Waits for the completion of a posted request or receive, which must have succeeded. Returns the bytes transferred. */
segment_length await_completion(struct session* session, DAT_EVD_HANDLE evd, const char* what, DAT_DTO_COOKIE* cookie);

/* Waits until the connection is established. WHOM is the peer's address, for the error message. */
void await_connection(struct session* session, const char* whom);

/* Waits until the peer has disconnected, as it should. */
void await_disconnection(struct session* session);

/* Seconds on a clock that only goes forward. */
double now_s(void);
