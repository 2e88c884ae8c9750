// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstring>

#include "udapl/registry/dat.hpp"

namespace dapple::registry {

inline bool is_name(const char* name) {
  return name && ::strnlen(name, DAT_NAME_MAX_LENGTH) < DAT_NAME_MAX_LENGTH;
}

}  // namespace dapple::registry
