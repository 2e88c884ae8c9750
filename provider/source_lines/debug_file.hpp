// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The file with a program's debug information that the program's section .gnu_debuglink names.
#pragma once

#include <cstdint>

namespace dapple::source_lines {

// Looks beside `file`, in the folder .debug there, and in the same folder below /usr/lib/debug, as gdb does. Returns a
// descriptor of the file with this checksum, and its path, which the caller frees; or -1.
int open_linked_file(const char* file, const char* link, uint32_t crc, char** path);

}  // namespace dapple::source_lines
