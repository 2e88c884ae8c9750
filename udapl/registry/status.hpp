// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "udapl/registry/common/dat.hpp"

namespace dapple::registry {

/// A complete DAT error: class, type and subtype.
constexpr DAT_RETURN error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) {
  return DAT_CLASS_ERROR | static_cast<DAT_RETURN>(type) | static_cast<DAT_RETURN>(subtype);
}

/// The names of the constants of an error; each pointer may be null. False if one of them has no name.
bool spell(DAT_RETURN value, const char** type, const char** subtype);

}  // namespace dapple::registry
