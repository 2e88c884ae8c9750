// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/socket.h>

#include <string>

namespace dapple::perf {

// The first address of a host, by its name or in figures, that is of this family; AF_UNSPEC takes any. Throws Failure.
sockaddr_storage address_of_host(const std::string& host, int family);

}  // namespace dapple::perf
