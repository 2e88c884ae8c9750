// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <sys/types.h>

namespace dapple::soft {

// Tells whether programs of this process and a process of `uid` may share the port: true for this process' own
// effective uid, and for the numbers in DAPPLE_TRUST_UID (separated by commas), as this user namespace counts them. A
// slot's owner can misdirect and read the packets of all others.
bool trusted_uid(uid_t uid);

}  // namespace dapple::soft
