// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The accesses of MemoryTable.
#include <string.h>

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "coherence/persistence.hpp"
#include "provider/soft/memory/apart_access.hpp"
#include "provider/soft/memory/fault_tolerant_stores.hpp"
#include "provider/soft/memory/gpu_access.hpp"
#include "provider/soft/memory/kernel_copy.hpp"
#include "provider/soft/memory/memory_use.hpp"
#include "provider/soft/memory/on_demand_bytes.hpp"
#include "provider/soft/memory/ordered_copy.hpp"
#include "provider/soft/memory/tsan_ignore.hpp"

namespace dapple::soft {

using roce::Accessor;
using roce::Fault;
using roce::RemoteRange;
using roce::Segment;

namespace {

// IBTA A19.4.1: FETH.
constexpr uint32_t kFlushToMemory = 1;
constexpr uint32_t kFlushToPersistence = 2;
constexpr uint32_t kFlushPlacementMask = 0xF;

}  // namespace

namespace {

constexpr size_t kLine = 64;

// Bytes that packets bring often lie behind those of the packet before. Their lines come from memory while the next
// packet's ICRC is computed, so that the stores need not wait for them.
void expect_more(const std::byte* next, size_t size) {
  for (size_t at = 0; at < size; at += kLine) __builtin_prefetch(next + at, 1);
}

}  // namespace

std::byte* MemoryTable::reach_remote(const Entry& entry, Accessor who, uint64_t address, uint64_t length,
                                     uint32_t access) {
  if (entry.domain != who.domain || (entry.access & access) != access) return nullptr;
  if (entry.kind == Kind::kWindow2 && entry.qpn != who.qpn) return nullptr;
  if (!within(address, length, entry.start, entry.length)) return nullptr;
  return entry.memory + (address - entry.start);
}

inline std::byte* MemoryTable::reach_local(const Entry& entry, Accessor who, uint64_t address, uint64_t length,
                                           uint32_t access) {
  if (entry.kind != Kind::kRegion || entry.domain != who.domain || (entry.access & access) != access) return nullptr;
  if (!within(address, length, entry.start, entry.length)) return nullptr;
  return entry.memory + (address - entry.start);
}

// The other way, for an entry that is apart. `touch` gets the memory; that of a GPU gets `copy`, with the place. So do
// on-demand memory and a dma-buf, if `copy` knows them.
template <typename Touch, typename Copy>
[[gnu::noinline, gnu::cold]] Fault MemoryTable::with_remote_apart(const Entry& entry, Accessor who, uint64_t address,
                                                                  uint64_t length, uint32_t access, Touch touch,
                                                                  Copy copy) {
  if (entry.region_kind == RegionKind::kGpu) {
    if (!ApartAccess::is_allowed(entry, who, address, length, access, ApartAccess::By::kPeer)) return Fault::kAccess;
    return copy(*entry.gpu, entry.at(address)) ? Fault::kNone : Fault::kAccess;
  }
  if constexpr (std::is_invocable_v<Copy, OnDemandBytes&, std::byte*>) {
    if (entry.region_kind == RegionKind::kOnDemand) {
      if (!ApartAccess::is_allowed(entry, who, address, length, access, ApartAccess::By::kPeer)) return Fault::kAccess;
      const TsanIgnore ignore;
      OnDemandBytes bytes(entry.pages);
      return copy(bytes, entry.at(address)) ? Fault::kNone : Fault::kAccess;
    }
  }
  const ApartAccess apart(entry, who, address, length, access, ApartAccess::By::kPeer);
  if (!apart) return Fault::kAccess;
  const TsanIgnore ignore;
  if constexpr (std::is_invocable_v<Copy, DriverBytes&, std::byte*>) {
    DriverBytes bytes;
    if (entry.region_kind == RegionKind::kDmabuf) return copy(bytes, apart.memory()) ? Fault::kNone : Fault::kAccess;
  }
  touch(apart.memory());
  return Fault::kNone;
}

// The same for a part of a segment. A null region has no memory, so the copy goes piece by piece.
template <typename Copy>
[[gnu::noinline, gnu::cold]] Fault MemoryTable::with_part_apart(const Entry& entry, Accessor who,
                                                                const Segment& segment, uint64_t offset, size_t done,
                                                                size_t size, uint32_t access, Copy copy) {
  if (entry.region_kind == RegionKind::kGpu) {
    const uint64_t address = segment.address + offset;
    if (!ApartAccess::is_allowed(entry, who, address, size, access, ApartAccess::By::kOwner)) return Fault::kAccess;
    return copy(*entry.gpu, entry.at(address), done, size) ? Fault::kNone : Fault::kAccess;
  }
  if (entry.region_kind == RegionKind::kOnDemand) {
    const uint64_t address = segment.address + offset;
    if (!ApartAccess::is_allowed(entry, who, address, size, access, ApartAccess::By::kOwner)) return Fault::kAccess;
    const TsanIgnore ignore;
    OnDemandBytes bytes(entry.pages);
    return copy(bytes, entry.at(address), done, size) ? Fault::kNone : Fault::kAccess;
  }
  const ApartAccess apart(entry, who, segment.address + offset, size, access, ApartAccess::By::kOwner);
  if (!apart) return Fault::kAccess;
  const TsanIgnore ignore;
  if constexpr (std::is_invocable_v<Copy, DriverBytes&, std::byte*, size_t, size_t>) {
    DriverBytes bytes;
    if (entry.region_kind == RegionKind::kDmabuf)
      return copy(bytes, apart.memory(), done, size) ? Fault::kNone : Fault::kAccess;
  }
  const size_t most = apart.most_at_once();
  for (size_t at = 0; at < size; at += most) {
    copy(apart.memory(), done + at, std::min(most, size - at), 0);
  }
  return Fault::kNone;
}

Fault MemoryTable::check_remote(Accessor who, const RemoteRange& range, uint32_t access) {
  if (range.length == 0) return Fault::kNone;
  const Use use(*this, range.rkey);
  if (!use) return Fault::kAccess;
  if (reach_remote(*use, who, range.address, range.length, access) != nullptr) return Fault::kNone;
  return ApartAccess::is_allowed(*use, who, range.address, range.length, access, ApartAccess::By::kPeer)
             ? Fault::kNone
             : Fault::kAccess;
}

Fault MemoryTable::write(Accessor who, const RemoteRange& range, const std::byte* from) {
  if (range.length == 0) return Fault::kNone;
  const Use use(*this, range.rkey);
  if (!use) return Fault::kAccess;
  std::byte* to = reach_remote(*use, who, range.address, range.length, roce::kRemoteWrite);
  if (to == nullptr) [[unlikely]] {
    return with_remote_apart(
        *use, who, range.address, range.length, roce::kRemoteWrite,
        [&](std::byte* memory) { copy_last_word_last(memory, from, range.length); },
        [&](auto& bytes, std::byte* memory) { return bytes.copy_in(memory, from, range.length); });
  }
  const TsanIgnore ignore;
  copy_last_word_last(to, from, range.length);
  const uint64_t rest = (*use).start + (*use).length - (range.address + range.length);
  expect_more(to + range.length, std::min(rest, range.length));
  return Fault::kNone;
}

Fault MemoryTable::read(Accessor who, const RemoteRange& range, std::byte* to) {
  if (range.length == 0) return Fault::kNone;
  const Use use(*this, range.rkey);
  if (!use) return Fault::kAccess;
  const std::byte* from = reach_remote(*use, who, range.address, range.length, roce::kRemoteRead);
  if (from == nullptr) [[unlikely]] {
    return with_remote_apart(
        *use, who, range.address, range.length, roce::kRemoteRead,
        [&](const std::byte* memory) { memcpy(to, memory, range.length); },
        [&](auto& bytes, const std::byte* memory) { return bytes.copy_out(memory, to, range.length); });
  }
  const TsanIgnore ignore;
  memcpy(to, from, range.length);
  return Fault::kNone;
}

template <typename Operation>
Fault MemoryTable::with_word(Accessor who, uint32_t rkey, uint64_t address, uint32_t access, Operation operation) {
  if (address % sizeof(uint64_t) != 0) return Fault::kUnaligned;
  const Use use(*this, rkey);
  if (!use) return Fault::kAccess;
  std::byte* word = reach_remote(*use, who, address, sizeof(uint64_t), access);
  if (word == nullptr) [[unlikely]] {
    Fault fault = Fault::kUnaligned;
    const auto touch = [&](std::byte* memory) {
      if (!aligned_for<uint64_t>(memory)) return;
      operation(reinterpret_cast<uint64_t*>(memory));
      fault = Fault::kNone;
    };
    const auto copy = [&](GpuMemory& gpu, std::byte* memory) {
      if (!aligned_for<uint64_t>(memory)) return true;
      fault = Fault::kNone;
      return change_gpu_word(gpu, memory, access == roce::kRemoteWrite, operation);
    };
    const Fault reached = with_remote_apart(*use, who, address, sizeof(uint64_t), access, touch, copy);
    return reached == Fault::kNone ? fault : reached;
  }
  // An IOVA may be aligned where the memory is not.
  if (!aligned_for<uint64_t>(word)) return Fault::kUnaligned;
  const TsanIgnore ignore;
  operation(reinterpret_cast<uint64_t*>(word));
  return Fault::kNone;
}

Fault MemoryTable::compare_swap(Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                                uint64_t& original) {
  return with_word(who, rkey, address, roce::kRemoteAtomic, [&](uint64_t* word) {
    original = compare;
    __atomic_compare_exchange_n(word, &original, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  });
}

Fault MemoryTable::fetch_add(Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) {
  return with_word(who, rkey, address, roce::kRemoteAtomic,
                   [&](uint64_t* word) { original = __atomic_fetch_add(word, add, __ATOMIC_SEQ_CST); });
}

Fault MemoryTable::atomic_write(Accessor who, uint32_t rkey, uint64_t address, uint64_t value) {
  return with_word(who, rkey, address, roce::kRemoteWrite,
                   [&](uint64_t* word) { __atomic_store_n(word, value, __ATOMIC_RELEASE); });
}

Fault MemoryTable::flush(Accessor who, const RemoteRange& range, uint32_t type) {
  const uint32_t placement = type & kFlushPlacementMask;
  const bool whole = roce::flushes_whole_region(type);
  if (placement == 0 || (placement & ~(kFlushToMemory | kFlushToPersistence)) != 0) return Fault::kAccess;
  const uint32_t access = roce::flush_rights(placement);
  if (range.length == 0 && !whole) return Fault::kNone;
  const Use use(*this, range.rkey);
  if (!use) return Fault::kAccess;
  const uint64_t address = whole ? (*use).start : range.address;
  const uint64_t length = whole ? (*use).length : range.length;
  const bool persists = (placement & kFlushToPersistence) != 0;
  if (persists && !coherence::machine_persistence().possible) return Fault::kFailed;
  const auto persist = [&](const std::byte* memory) {
    coherence::persist(coherence::cpu_back_end(), coherence::machine_persistence(), memory, length);
    coherence::cpu_back_end().complete_persistence();
  };
  if (const std::byte* memory = reach_remote(*use, who, address, length, access); memory != nullptr) {
    if (persists) persist(memory);
  } else if (!persists) {
    // Each Write is visible when it ends, in a GPU, too. A page that is not there has no Write, and need not come in.
    if (!ApartAccess::is_allowed(*use, who, address, length, access, ApartAccess::By::kPeer)) return Fault::kAccess;
  } else if (const Fault fault = with_remote_apart(*use, who, address, length, access, persist,
                                                   [](GpuMemory&, const std::byte*) { return false; });
             fault != Fault::kNone) {
    return fault;
  }
  coherence::cpu_back_end().full_barrier();
  return Fault::kNone;
}

Fault MemoryTable::check_local(Accessor who, std::span<const Segment> segments, bool write) {
  for (const Segment& segment : segments) {
    if (segment.length == 0) continue;
    const Use use(*this, segment.lkey);
    if (!use) return Fault::kAccess;
    const uint32_t access = write ? uint32_t{roce::kLocalWrite} : 0;
    if (reach_local(*use, who, segment.address, segment.length, access) == nullptr &&
        !ApartAccess::is_allowed(*use, who, segment.address, segment.length, access, ApartAccess::By::kOwner))
      return Fault::kAccess;
  }
  return Fault::kNone;
}

// Calls copy(memory, done, size, rest) for a part of a segment. The segment has `rest` bytes behind that part.
template <typename Copy>
[[gnu::always_inline]] inline Fault MemoryTable::with_part(Accessor who, const Segment& segment, uint64_t offset,
                                                           size_t done, size_t size, uint32_t access, Copy copy) {
  assert(offset + size <= segment.length);
  const Use use(*this, segment.lkey);
  if (!use) return Fault::kAccess;
  std::byte* memory = reach_local(*use, who, segment.address + offset, size, access);
  if (memory == nullptr) return Fault::kAccess;
  const TsanIgnore ignore;
  copy(memory, done, size, segment.length - offset - size);
  return Fault::kNone;
}

// The same for each part of the segments that the bytes [offset, offset + size) lie in, also in regions that are apart.
template <typename Copy>
[[gnu::noinline]] Fault MemoryTable::with_parts(Accessor who, std::span<const Segment> segments, uint64_t offset,
                                                size_t size, uint32_t access, Copy copy) {
  size_t done = 0;
  for (const Segment& segment : segments) {
    if (done == size) break;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const size_t part = std::min<uint64_t>(segment.length - offset, size - done);
    Fault fault = with_part(who, segment, offset, done, part, access, copy);
    if (fault == Fault::kAccess) [[unlikely]] {
      if (const Use use(*this, segment.lkey); use)
        fault = with_part_apart(*use, who, segment, offset, done, part, access, copy);
    }
    if (fault != Fault::kNone) return fault;
    done += part;
    offset = 0;
  }
  return done == size ? Fault::kNone : Fault::kAccess;
}

// Most messages have one segment.
template <typename Copy>
[[gnu::always_inline]] inline Fault MemoryTable::with_bytes(Accessor who, std::span<const Segment> segments,
                                                            uint64_t offset, size_t size, uint32_t access, Copy copy) {
  const bool is_one = segments.size() == 1 && size > 0 && offset + size <= segments[0].length;
  if (is_one) {
    const Fault fault = with_part(who, segments[0], offset, 0, size, access, copy);
    if (fault != Fault::kAccess) [[likely]]
      return fault;
  }
  return with_parts(who, segments, offset, size, access, copy);
}

Fault MemoryTable::gather(Accessor who, std::span<const Segment> segments, uint64_t offset, std::byte* to,
                          size_t size) {
  return with_bytes(
      who, segments, offset, size, 0,
      Copies{[to](const std::byte* memory, size_t done, size_t part, uint64_t) { memcpy(to + done, memory, part); },
             [to](auto& bytes, const std::byte* memory, size_t done, size_t part) {
               return bytes.copy_out(memory, to + done, part);
             }});
}

Fault MemoryTable::scatter(Accessor who, std::span<const Segment> segments, uint64_t offset, const std::byte* from,
                           size_t size) {
  return with_bytes(who, segments, offset, size, roce::kLocalWrite,
                    Copies{[from](std::byte* memory, size_t done, size_t part, uint64_t rest) {
                             if (FaultTolerantStores::now()) return store_tolerating_faults(memory, from + done, part);
                             copy_last_word_last(memory, from + done, part);
                             expect_more(memory + part, std::min<uint64_t>(rest, part));
                           },
                           [from](auto& bytes, std::byte* memory, size_t done, size_t part) {
                             return bytes.copy_in(memory, from + done, part);
                           }});
}

Fault MemoryTable::lend(Accessor who, std::span<const Segment> segments, uint64_t offset, size_t size, bool write,
                        Borrower& borrower) {
  bool ended = false;
  const auto plain = [&](std::byte* memory, size_t done, size_t part, uint64_t) {
    ended = ended || !borrower.use(memory, done, part);
  };
  const auto gpu = [&](GpuMemory&, std::byte*, size_t, size_t) {
    ended = ended || !borrower.pass_gpu();
    return true;
  };
  const auto on_demand = [&](OnDemandBytes& bytes, std::byte* memory, size_t done, size_t part) {
    if (!bytes.bring_in(memory, part, write)) return false;
    ended = ended || !borrower.use_on_demand(memory, done, part);
    return true;
  };
  const Fault fault = with_parts(who, segments, offset, size, write ? uint32_t{roce::kLocalWrite} : 0,
                                 Copies{plain, Copies{gpu, on_demand}});
  return ended ? Fault::kFailed : fault;
}

Fault MemoryTable::scatter_loan(Accessor who, std::span<const Segment> segments, uint64_t offset,
                                const roce::Loan& loan) {
  class Fetch final : public Borrower {
   public:
    explicit Fetch(const roce::Loan& bytes) : bytes_(bytes) {}
    bool use(std::byte* memory, size_t done, size_t size) override { return bytes_.copy(done, memory, size); }

   private:
    const roce::Loan& bytes_;
  };
  Fetch fetch(loan);
  return lend(who, segments, offset, loan.length(), true, fetch);
}

Fault MemoryTable::lend_to_peer(Accessor who, const RemoteRange& range, uint32_t access, Borrower& borrower) {
  const Use use(*this, range.rkey);
  if (!use) return Fault::kAccess;
  bool goes_on = false;
  const auto lend = [&](std::byte* memory) { goes_on = borrower.use(memory, 0, range.length); };
  Fault fault = Fault::kNone;
  if (std::byte* memory = reach_remote(*use, who, range.address, range.length, access); memory != nullptr) {
    lend(memory);
  } else {
    const auto gpu = [&](GpuMemory&, std::byte*) {
      goes_on = borrower.pass_gpu();
      return true;
    };
    const auto on_demand = [&](OnDemandBytes& bytes, std::byte* at) {
      if (!bytes.bring_in(at, range.length, (access & kRemoteChanges) != 0)) return false;
      goes_on = borrower.use_on_demand(at, 0, range.length);
      return true;
    };
    fault = with_remote_apart(*use, who, range.address, range.length, access, lend, Copies{gpu, on_demand});
  }
  return fault == Fault::kNone && !goes_on ? Fault::kFailed : fault;
}

}  // namespace dapple::soft
