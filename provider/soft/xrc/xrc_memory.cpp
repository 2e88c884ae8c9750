// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/xrc_memory.hpp"

namespace dapple::soft {

using roce::Accessor;
using roce::Fault;
using roce::RemoteRange;

Fault XrcMemory::check_remote(Accessor who, const RemoteRange& range, uint32_t access) {
  return receives_.with_memory(who.domain, [&](Memory& memory) { return memory.check_remote(who, range, access); });
}

Fault XrcMemory::write(Accessor who, const RemoteRange& range, const std::byte* from) {
  return receives_.with_memory(who.domain, [&](Memory& memory) { return memory.write(who, range, from); });
}

Fault XrcMemory::read(Accessor who, const RemoteRange& range, std::byte* to) {
  return receives_.with_memory(who.domain, [&](Memory& memory) { return memory.read(who, range, to); });
}

Fault XrcMemory::compare_swap(Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                              uint64_t& original) {
  return receives_.with_memory(
      who.domain, [&](Memory& memory) { return memory.compare_swap(who, rkey, address, compare, swap, original); });
}

Fault XrcMemory::fetch_add(Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) {
  return receives_.with_memory(who.domain,
                               [&](Memory& memory) { return memory.fetch_add(who, rkey, address, add, original); });
}

Fault XrcMemory::scatter(Accessor who, std::span<const roce::Segment> segments, uint64_t offset, const std::byte* from,
                         size_t size) {
  return receives_.with_receive_memory(
      [&](Memory& memory) { return memory.scatter(who, segments, offset, from, size); });
}

Fault XrcMemory::invalidate_remote(Accessor who, uint32_t rkey) {
  return receives_.with_memory(who.domain, [&](Memory& memory) { return memory.invalidate_remote(who, rkey); });
}

}  // namespace dapple::soft
