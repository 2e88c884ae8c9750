// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The attributes as callers of different age have them: who was built before a field was added has memory that ends
// before it, and does not set its bit in comp_mask.
#ifndef DAPPLE_PROVIDER_ATTR_FIELDS_HPP
#define DAPPLE_PROVIDER_ATTR_FIELDS_HPP

#include <infiniband/dappledv.h>
#include <stddef.h>
#include <string.h>

namespace dapple::provider {

inline constexpr uint64_t kAllFields = DAPPLEDV_DEVICE_ATTR_PERSISTENCE;

// The bytes that a caller has who set these bits.
inline size_t size_of_fields(uint64_t comp_mask) {
  if ((comp_mask & DAPPLEDV_DEVICE_ATTR_PERSISTENCE) != 0) return sizeof(dappledv_device_attr);
  return offsetof(dappledv_device_attr, persist_instruction);
}

// Copies the fields that from has and the mask asks for, and not a byte beyond either; what to lacks is left alone.
// They may be the same.
inline void copy_fields(const dappledv_device_attr& from, uint64_t comp_mask, dappledv_device_attr* to) {
  const uint64_t fields = from.comp_mask & comp_mask & kAllFields;
  memmove(to, &from, size_of_fields(fields));
  to->comp_mask = fields;
}

}  // namespace dapple::provider

#endif  // DAPPLE_PROVIDER_ATTR_FIELDS_HPP
