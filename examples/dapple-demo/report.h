/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * How the program ends when something is wrong: one line on stderr that says what, and what to do about it. The kernel
 * and the libraries release what a dead process held, so nothing is unwound first.
 */
#pragma once

#include "api.h"

/* Which half of the program speaks; it starts every line. */
void report_set_role(const char* role);

_Noreturn void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program unless RESULT is DAT_SUCCESS. CALL names the function that returned it, ADVICE what the user can do.
 */
void must(DAT_RETURN result, const char* call, const char* advice);

/* A name for a DAT_RETURN, such as "DAT_INVALID_PARAMETER DAT_INVALID_ARG2". The text lives until the next call. */
const char* dat_name(DAT_RETURN result);
