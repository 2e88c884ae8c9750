// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The emulator finds mistakes while it holds locks, and in signal handlers. Without dapple-run --check a finding is a
// line on standard error at once. With it, findings wait for a moment when the check may show them.
#pragma once

#include <initializer_list>

#include "provider/common/check_calls.hpp"

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

// Begins to collect the findings of this process. show: null without --check. False without memory.
bool begin_findings(ShowFinding show);
bool is_checked();

// The stack of the caller; empty without --check, which alone shows stacks.
Stack stack_here();

// Reports a mistake, with at most kMaxPlaces places. Under the check, a repetition of the same kind at the same places
// is dropped. Any thread and any signal handler may call it.
inline constexpr int kMaxPlaces = 2;
[[gnu::format(printf, 3, 4)]] void report(const FindingKind& kind, std::initializer_list<ReportedStack> places,
                                          const char* format, ...);

// Shows the findings that wait; costs two loads if none does. The caller holds no lock and is not a signal handler.
// before_halt: as for ShowFinding.
void show_findings(void (*before_halt)());
// The same, and waits a limited time for findings that other threads are showing.
void show_findings_at_exit();

// The same for a signal handler: without stacks, and whatever the check's options say. A finding that another thread is
// showing may be shown twice.
void write_findings();

}  // namespace dapple::provider
