// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/socket.h>

#include <string>

namespace dapple::perf {

// The first address of this family of a host, which is a name or a numeric address; AF_UNSPEC accepts any family.
// Throws Failure.
sockaddr_storage address_of_host(const std::string& host, int family);

}  // namespace dapple::perf
