// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Files of the kernel's, read so that a shortage is never taken for something missing: the C++ library's own streams
// and folders take a lack of memory for the end of what there is, or for the end of the program. Blocking; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dapple::verbs {

// Throws std::bad_alloc if the errno means a lack of descriptors or memory, which the next call may not meet.
void throw_at_shortage(int error);

// Appends all of a file. Returns 0 or an errno; EFBIG once text has more than limit bytes. A pipe or similar is waited
// for one second at most, then EAGAIN; a pipe without a writer is empty. Throws std::bad_alloc.
int read_file(const char* path, std::string& text, size_t limit = SIZE_MAX);

// Empty if there is none or the kernel refuses to say. Throws std::bad_alloc, at a shortage too, and so does the next.
std::string first_line(const std::string& path);
// The names in a folder, with numbers in their order (mlx5_2 before mlx5_10); none if it cannot be read.
std::vector<std::string> names_in(const std::string& folder);

// $SYSFS_PATH, which libibverbs honours, too, unless the program is setuid; else /sys.
std::string sysfs_root();

}  // namespace dapple::verbs
