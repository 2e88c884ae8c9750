// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_EMULATOR_FINDING_HPP
#define DAPPLE_PROVIDER_EMULATOR_FINDING_HPP

namespace dapple::provider {

// A kind of mistake, by its name in dapple-check(1). The texts have no characters that JSON forbids.
struct FindingKind {
  const char* name;
  const char* remedy;
};

inline constexpr FindingKind kUnsyncedForCpu = {
    "missing-sync",
    "Sync for the CPU (dappledv_sync_for_cpu, dat_lmr_sync_rdma_write) before it reads what the device has written."};
inline constexpr FindingKind kUnsyncedForDevice = {
    "missing-sync",
    "Sync for the device (dappledv_sync_for_device, dat_lmr_sync_rdma_read) after the CPU has written."};
inline constexpr FindingKind kLostBytes = {
    "missing-sync", "Sync lines that the CPU has changed before the device writes to them, and leave them alone then."};
inline constexpr FindingKind kChangedTooEarly = {
    "changed-send-buffer", "Leave a buffer as it is until the completion of its request is polled."};

// A line on standard error. Under dapple-run --check it is an error of the check, with the remedy, and goes to
// dapple-run's file, too. From any thread, and from handlers of signals.
[[gnu::format(printf, 2, 3)]] void report(const FindingKind& kind, const char* format, ...);

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_EMULATOR_FINDING_HPP
