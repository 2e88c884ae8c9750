// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <optional>
#include <string>

#include "udapl/functions/dat.hpp"

namespace dapple::udapl::functions {

// The table whose slots all answer INVALID_HANDLE. Freed objects dispatch through it.
const DAT_PROVIDER& dead_table();
// A table with every function set.
DAT_PROVIDER make_table(const char* name, DAT_IA_OPEN_FUNC ia_open);

// From here on each slot answers INVALID_STATE, for all objects that dispatch through the table.
void refuse_everything(DAT_PROVIDER& table);

struct OpenOptions {
  bool thread_safe;
  bool relaxed_ordering;
};
DAT_RETURN open_ia(const DAT_NAME_PTR name, DAT_COUNT async_qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia_handle,
                   OpenOptions options);

// The dat.conf entry of a table.
const DAT_PROVIDER_INFO& info_of(const void* table);
// The ia_params of our entry with this name; null if there is none.
std::optional<std::string> params_of(const char* name);

}  // namespace dapple::udapl::functions
