// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <string_view>

namespace dapple::soft {

// The names and numbers of the errors that verbs and librdmacm return, such as "ENOMEM". Empty and 0 for others.
std::string_view errno_name(int error);
int errno_of(std::string_view name);

}  // namespace dapple::soft
