/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_INFINIBAND_DAPPLEDV_FAILURE_H
#define DAPPLE_INFINIBAND_DAPPLEDV_FAILURE_H

/*
 * Errors that a library above verbs returns, and calls that the program has left out, in the reports of dapple-run
 * --explain and --check.
 *
 *   if (!queue->is_connected) {
 *     dappledv_report_failure("send_bytes() fails: the queue is not connected.", "Call connect_queue() first.");
 *     return -ENOTCONN;
 *   }
 *
 * Threads: any number of threads may call the functions.
 */

#ifdef __cplusplus
extern "C" {
#define DAPPLEDV_NOEXCEPT noexcept
#else
#define DAPPLEDV_NOEXCEPT
#endif

/*
 * Reports that a function of the calling library returns an error to the program: an error of the kind "refused-call",
 * with the stack of the call. dapple-run --check then ends with its exit code for errors. dappledv_refusal() returns
 * the text from then on. For an error of a verb, which has a report already, do not call it.
 *
 * text, remedy: a sentence each. They are copied.
 *
 * Returns 1; or 0 if nothing is reported, because the program does not run under dapple-run --explain or --check, or no
 * software device was looked for yet. errno stays.
 */
int dappledv_report_failure(const char* text, const char* remedy) DAPPLEDV_NOEXCEPT;

/* The stack of a call. Only the functions below use the member. */
struct dappledv_call {
  void* opaque[32];
};

/*
 * Notes the stack of this call, after which the program needs another one. It allocates no memory.
 *
 * Returns 1; or 0, and call is unchanged, if the program does not run under dapple-run --check, or no software device
 * was looked for yet. errno stays.
 */
int dappledv_note_call(struct dappledv_call* call) DAPPLEDV_NOEXCEPT;

/*
 * Reports that the program has left a call out: a warning of the kind "missing-call", with the stack of `after`, which
 * dappledv_note_call() has noted, and that of this call.
 *
 * text, remedy: a sentence each. They are copied.
 *
 * Returns 1; or 0 if nothing is reported, as for dappledv_note_call(). errno stays.
 */
int dappledv_report_missing_call(const char* text, const char* remedy,
                                 const struct dappledv_call* after) DAPPLEDV_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* DAPPLE_INFINIBAND_DAPPLEDV_FAILURE_H */
