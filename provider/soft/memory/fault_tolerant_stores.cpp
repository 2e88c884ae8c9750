// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/memory/fault_tolerant_stores.hpp"

#include "provider/soft/memory/kernel_copy.hpp"
#include "provider/soft/memory/ordered_copy.hpp"

namespace dapple::soft {

void store_tolerating_faults(std::byte* to, const std::byte* from, size_t size) {
  if (copy_in_any_order(to, from, size) == KernelCopy::kForbidden) copy_last_word_last(to, from, size);
}

}  // namespace dapple::soft
