// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// Descriptors of regions and peers from an untrusted sender: accepted or refused as librpma.h documents; accepted ones
// are written again without change.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rpma/memory/descriptor.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using dapple::fuzz::require;
using namespace dapple::rpma;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::optional<Descriptor> region = decode(data, size);
  require(region.has_value() == (size >= kOldDescriptorSize));
  if (!region) return 0;
  require((region->native & ~kNativeKnown) == 0);
  require(region->native == 0 || (size >= kDescriptorSize && (data[21] & kNativeMarkMask) == kNativeMark));
  // Every byte of the region has an address.
  if (in_address_space(*region) && region->size > 0) require(region->address + (region->size - 1) >= region->address);

  std::uint8_t again[kDescriptorSize];
  encode(*region, again);
  require(std::memcmp(again, data, kOldDescriptorSize) == 0);
  const std::optional<Descriptor> copy = decode(again, sizeof again);
  require(copy && copy->address == region->address && copy->size == region->size && copy->rkey == region->rkey &&
          copy->usage == region->usage && copy->native == region->native);
  return 0;
}
