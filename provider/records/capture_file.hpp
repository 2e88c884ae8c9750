// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include "provider/system/owned_fd.hpp"
#include "provider/system/problem.hpp"

namespace dapple::soft {

// Opens a file of DAPPLE_PCAP, to which records are appended: pcap with nanoseconds, link type Linux cooked. "%p" in
// the name means the process' number. An existing file is continued. No descriptor on failure, and `problem` has the
// reason.
OwnedFd open_capture_file(const char* name, Problem& problem);

}  // namespace dapple::soft
