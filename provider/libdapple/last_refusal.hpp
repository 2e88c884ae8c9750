// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

struct dappledv_call;

namespace dapple::provider {

// As dappledv_refusal().
const char* last_refusal(unsigned* count);

// dappledv_report_failure().
bool report_failure(const char* text, const char* remedy);

// dappledv_note_call() and dappledv_report_missing_call().
bool note_call(dappledv_call& call);
bool report_missing_call(const char* text, const char* remedy, const dappledv_call& after);

}  // namespace dapple::provider
