/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The end of the program after an error: one line on stderr with the error and advice. The kernel and the libraries
 * release a dead process' resources, so nothing is freed before.
 */
#pragma once

#include "api.h"

/* The side of the program, which starts every line. */
void report_set_role(const char* role);

_Noreturn void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Ends the program unless RESULT is DAT_SUCCESS. CALL names the function that returned it; ADVICE tells the user what
 * to do.
 */
void must(DAT_RETURN result, const char* call, const char* advice);

/* A name for a DAT_RETURN, such as "DAT_INVALID_PARAMETER DAT_INVALID_ARG2". The text lives until the next call. */
const char* dat_name(DAT_RETURN result);
