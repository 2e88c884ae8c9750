// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::dat {

// One line to stderr: "dapple: ...". Silent when DAPL_DBG_TYPE is set without its error bit (1).
[[gnu::format(printf, 1, 2)]] void log_error(const char* format, ...);

}  // namespace dapple::dat
