/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_INFINIBAND_DAPPLEDV_REFUSAL_H
#define DAPPLE_INFINIBAND_DAPPLEDV_REFUSAL_H

/*
 * The reasons of dapple-run --explain, for the messages of programs and libraries.
 *
 *   if (ibv_modify_qp(qp, &attr, mask) != 0) {
 *     const char* reason = dappledv_refusal(NULL);
 *     fprintf(stderr, "to RTR: %s\n", reason != NULL ? reason : strerror(errno));
 *   }
 *
 * Threads: any number of threads may call the function; each has its own reasons.
 */

#ifdef __cplusplus
extern "C" {
#define DAPPLEDV_NOEXCEPT noexcept
#else
#define DAPPLEDV_NOEXCEPT
#endif

/*
 * The reason of the most recent failure in this thread: of a verb, of a function of librdmacm, or of a connection that
 * librdmacm has reported by an event. For example: "ibv_dereg_mr() for a memory region of dapple0 fails with EBUSY: a
 * memory window is bound to it." It is valid until the thread's next such failure.
 *
 * count: if it is not NULL, it becomes the number of this thread's failures so far. A library that asks for it before
 * and after its own calls knows whether the reason belongs to one of them.
 *
 * Returns NULL if nothing has failed yet, if the program does not run under dapple-run --explain or --check, or without
 * a software device; then the count is 0. errno stays.
 */
const char* dappledv_refusal(unsigned* count) DAPPLEDV_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* DAPPLE_INFINIBAND_DAPPLEDV_REFUSAL_H */
