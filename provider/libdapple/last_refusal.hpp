// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::provider {

// As dappledv_refusal().
const char* last_refusal(unsigned* count);

// dappledv_report_failure().
bool report_failure(const char* text, const char* remedy);

}  // namespace dapple::provider
