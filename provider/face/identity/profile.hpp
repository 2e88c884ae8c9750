// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A profile: lines "key = value". A line that begins with # is a comment, and so is the rest of a line after " #".
// dapple-soft(7) lists the keys.
#pragma once

#include <algorithm>
#include <string_view>

#include "provider/face/identity/identity.hpp"

namespace dapple::face {

// Reads all lines into the identity. `name` is the profile's name or path, for messages and for `attributes.profile`.
// False at the first wrong line; `problem` has its number, and the nearest key or the range.
bool read_profile(std::string_view text, std::string_view name, Identity& identity, soft::Problem& problem);

// The same for one word "key=value" of DAPPLE_AS.
bool read_setting(std::string_view word, Identity& identity, soft::Problem& problem);

// For "%.*s" in a line for people: the size of a text that is cut off if it is long.
inline int shown(std::string_view text) {
  return static_cast<int>(std::min<size_t>(text.size(), 80));
}

}  // namespace dapple::face
