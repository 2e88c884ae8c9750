// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstring>

namespace dapple::provider {

// An element of a program's list. The list may have any address: libiscsi's are in packed structs.
inline ibv_sge segment_at(const ibv_sge* list, int number) {
  ibv_sge segment;
  std::memcpy(&segment, reinterpret_cast<const std::byte*>(list) + static_cast<size_t>(number) * sizeof segment,
              sizeof segment);
  return segment;
}

}  // namespace dapple::provider
