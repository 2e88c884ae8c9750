// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The keys of a profile, and the ranges of their values.
#pragma once

#include <string_view>

#include "provider/face/identity/identity.hpp"

namespace dapple::face {

// Without blanks and tabs at both ends.
std::string_view trimmed(std::string_view text);

// False if the key is unknown or the value is wrong. Then `problem` names the nearest key, or the range. A limit that
// is greater than the software device's becomes the software device's.
bool set_key(std::string_view key, std::string_view value, Identity& identity, soft::Problem& problem);

// Asserts nothing and changes nothing: true if the values go together. `name` is the profile's.
bool complete(const Identity& identity, std::string_view name, soft::Problem& problem);

// Calls each(key) for every key, in the order of dapple-soft(7).
void for_each_key(void (*each)(std::string_view key, void* argument), void* argument);

}  // namespace dapple::face
