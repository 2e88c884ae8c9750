// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Copies a consumer's data into the place for it in a message.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <span>

namespace dapple::roce::cm {

// The caller has compared the sizes. The rest of the place stays zero.
template <size_t Size>
void fill(std::array<std::byte, Size>& place, std::span<const std::byte> data) {
  assert(data.size() <= Size);
  std::copy_n(data.begin(), std::min(data.size(), Size), place.begin());
}

}  // namespace dapple::roce::cm
