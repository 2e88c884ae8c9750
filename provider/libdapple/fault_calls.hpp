// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappledv_fault_next() and its relatives: the software device's plug-in carries them out.
#pragma once

namespace dapple::provider {

// The plug-in exports functions of these names and types.
inline constexpr char kFaultNext[] = "dapple_fault_next";
inline constexpr char kFaultClear[] = "dapple_fault_clear";
inline constexpr char kFaultPending[] = "dapple_fault_pending";
using FaultNext = int (*)(const char* verb, int error);
using FaultClear = int (*)();
using FaultPending = int (*)(const char* verb);

// ENOSYS if this process has no plug-in. Both load libibverbs' drivers.
int fault_next(const char* verb, int error);
int fault_clear();
// 0 if this process has no plug-in: then it has planned nothing.
int fault_pending(const char* verb);

}  // namespace dapple::provider
