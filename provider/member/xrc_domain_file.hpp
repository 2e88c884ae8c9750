// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory file that the processes of an XRC domain share (xrc_messages.hpp). Nobody can change its size, so no
// access to a mapping of it fails.
#pragma once

#include "provider/system/owned_fd.hpp"

namespace dapple::soft {

// Empty on failure, and errno tells why.
OwnedFd make_xrc_domain_file();
// False for a file that may shrink, or has another size.
bool is_xrc_domain_file(int fd);

}  // namespace dapple::soft
