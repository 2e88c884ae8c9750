/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_INFINIBAND_DAPPLEDV_FAULT_H
#define DAPPLE_INFINIBAND_DAPPLEDV_FAULT_H

/*
 * Faults of dapple's software device, for unit tests under dapple-run: a call or a completion fails once, without any
 * other effect.
 *
 *   if (dappledv_fault_next("ibv_reg_mr", ENOMEM) != 0) return 77;  // no software device: skip the test
 *   assert(program_registers_memory() == false);                    // this call fails
 *   assert(program_registers_memory() == true);                     // the next one succeeds
 *
 * The first two functions return 0, or the value of errno for the reason. Nothing changes after an error. No function
 * changes errno itself.
 *
 * The first call of one of these two must come before the process opens a software device: otherwise the devices get
 * faster operations, which do not count calls.
 *
 * Threads: any number of threads may call the functions at the same time. The first two allocate memory, list the RDMA
 * devices, and read the environment: like getenv(3) they must not run while another thread changes it.
 */

#ifdef __cplusplus
extern "C" {
#define DAPPLEDV_NOEXCEPT noexcept
#else
#define DAPPLEDV_NOEXCEPT
#endif

/*
 * Lets the next call of a verb by this process fail. The call after it succeeds again.
 *
 * verb: "ibv_reg_mr", "ibv_post_send" or another function of DAPPLE_FAULTS in dapple-soft(7) whose name begins with
 * "ibv_", and error: an errno. Or verb is "completion", and error a value of enum ibv_wc_status: the next successful
 * completion gets this status, and its queue pair is in error. Or verb is "event", and error a value of enum
 * ibv_event_type: this event comes with the next successful completion. A second call for the same verb replaces the
 * first, until the fault has come.
 *
 * Returns 0, or:
 *   EINVAL  verb or error is unknown
 *   EBUSY   the process has opened a software device before
 *   ENOSYS  the process has no software device, or no libibverbs
 */
int dappledv_fault_next(const char* verb, int error) DAPPLEDV_NOEXCEPT;

/*
 * Withdraws all faults of dappledv_fault_next() that have not come yet. The plan of DAPPLE_FAULTS stays.
 *
 * Returns 0, EBUSY or ENOSYS, as dappledv_fault_next().
 */
int dappledv_fault_clear(void) DAPPLEDV_NOEXCEPT;

/*
 * Returns 1 if a fault of dappledv_fault_next() for this verb, or for any verb if it is NULL, has not come yet, and 0
 * otherwise: also for an unknown verb, and without a software device.
 */
int dappledv_fault_pending(const char* verb) DAPPLEDV_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* DAPPLE_INFINIBAND_DAPPLEDV_FAULT_H */
