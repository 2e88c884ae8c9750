// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Reads the kernel's files, and distinguishes a shortage from a missing file: the C++ library's own streams and folders
// treat a lack of memory as the end of the file, or end the program. Blocking; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dapple::verbs {

// Throws std::bad_alloc if the errno means a lack of descriptors or memory, which may be over at the next call.
void throw_at_shortage(int error);

// Appends all of a file. Returns 0 or an errno; EFBIG once text has more than limit bytes. Waits at most one second for
// a pipe or similar, then returns EAGAIN; a pipe without a writer is empty. Throws std::bad_alloc.
int read_file(const char* path, std::string& text, size_t limit = SIZE_MAX);

// Empty if there is no such file or the kernel refuses to answer. Throws std::bad_alloc, also at a shortage; so does
// the next function.
std::string first_line(const std::string& path);
// The names in a folder, with numbers in their order (mlx5_2 before mlx5_10); empty if it cannot be read.
std::vector<std::string> names_in(const std::string& folder);

// $SYSFS_PATH, which libibverbs obeys, too, unless the program is setuid; otherwise /sys.
std::string sysfs_root();

}  // namespace dapple::verbs
