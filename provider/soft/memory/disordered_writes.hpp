// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// order=random of DAPPLE_FAULTS: no program may rely on the order in which the bytes of an RDMA Write become visible.
#pragma once

#include "provider/soft/memory/memory_layer.hpp"
#include "provider/system/random.hpp"

namespace dapple::soft {

// The bytes of each packet are placed in pieces, with a pause between them. The seed determines the order, but the
// packet's last bytes are never placed last: a program that polls them finds bytes before them missing. Aligned words
// of eight bytes stay whole, because programs also use such a word alone. Any thread.
class DisorderedWrites final : public MemoryLayer {
 public:
  static constexpr size_t kMaxPieces = 4;

  DisorderedWrites(roce::Memory& below, uint64_t seed) : MemoryLayer(below), random_(seed) {}

  roce::Fault write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) override;

 private:
  // A piece ends where the next one begins; both are offsets.
  struct Pieces {
    size_t begin[kMaxPieces + 1];
    size_t order[kMaxPieces];
    size_t count = 0;
  };
  Pieces cut(const roce::RemoteRange& range);

  RandomSequence random_;
};

}  // namespace dapple::soft
