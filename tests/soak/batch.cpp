// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/soak/batch.hpp"

#include <algorithm>

namespace dapple::soak {
namespace {

constexpr uint32_t kLargestBits = 18;
constexpr uint32_t kMessageBits = 12;

Side plan_side(Random& random, size_t part, bool atomics) {
  Side side;
  side.count = random.below(kMaxTransfers + 1);
  // Each transfer has its own slice of the destination.
  const size_t slice = part / kMaxTransfers;
  for (uint32_t i = 0; i < side.count; i++) {
    Transfer& transfer = side.transfers[i];
    transfer.operation = static_cast<Operation>(random.below(atomics ? 4 : 3));
    transfer.size = std::min<uint32_t>(random.size(kLargestBits), static_cast<uint32_t>(slice));
    if (transfer.operation == Operation::kSend) transfer.size = random.size(kMessageBits);
    transfer.from = random.below(part - transfer.size + 1);
    transfer.to = i * slice + (transfer.size < slice ? random.below(slice - transfer.size + 1) : 0);
    transfer.value = random.next();
  }
  return side;
}

}  // namespace

Batch plan_batch(uint64_t seed, uint64_t number, size_t part, bool atomics) {
  Random random(mix(seed) ^ number);
  Batch batch;
  batch.seed = random.next();
  for (Side& side : batch.sides) side = plan_side(random, part, atomics);
  return batch;
}

}  // namespace dapple::soak
