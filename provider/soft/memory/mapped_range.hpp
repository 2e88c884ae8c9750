// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Checks the memory of a region.
#pragma once

#include <stddef.h>

namespace dapple::soft {

// 0 if every page of the range is mapped, and the first and the last may be read (and written, if `write`), as far as
// the kernel reports this; EFAULT otherwise, and EINVAL for a range that wraps around or has 2^32 pages. Brings in the
// first and the last page only. A length of 0 is valid anywhere.
int probe_mapped_range(const void* address, size_t length, bool write);

// Brings in every page of the range, as an access of the device does under on-demand paging. 0, or EFAULT if one is not
// there, or EINVAL if the program may not read one (or write it, if `write`) or the kernel cannot bring it in, as that
// of a dma-buf. Before Linux 5.14: EFAULT if one is not mapped, and nothing is brought in.
int populate_range(const void* address, size_t length, bool write);

}  // namespace dapple::soft
