// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/socket.h>

namespace dapple::udapl {

class Ia;

// Logs a failed connection, or failed datagrams, on request. qualifier: the consumer's, or a port; status: the
// connection manager's, or an errno below 0.
void log_failed_connect(const Ia& ia, const sockaddr* remote, unsigned long long qualifier, const char* what,
                        int status);

}  // namespace dapple::udapl
