// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The memory that a device's peers and queue pairs reach by keys: regions, and windows of both types.
//
// A key is 24 bits of index and 8 bits of tag. The lower bits of the index are the slot in the table. Slots are taken
// in turn, from at least twice as many as are in use. The upper bits count the laps. So a freed key stays invalid for a
// long time, and a program that registers and deregisters for ever needs no more memory. An access checks its key,
// holds the entry for the length of one copy, and lets it go. A call that removes an entry (dereg, rereg, bind,
// invalidate) first makes the key invalid and then waits for the accesses in progress. A later access sees the invalid
// key before it holds the entry, so the wait cannot starve. Accesses to regions are many and removals few, so a removal
// pays for both (users_in_progress.hpp). Windows come and go with each message, so their accesses are counted.
//
// Regions of other kinds than kPlain are apart: the entry names no domain that a queue pair has, so an access fails
// where it compares the two, and only then looks for the other way (ApartAccess). Accesses to plain memory pay nothing.
//
// The device copies in this process. A region's pages are not pinned, so a program that unmaps memory while a region
// covers it crashes at the next access, where a kernel's device would go on with the old pages
// (fault_tolerant_stores.hpp has the exception). After a fork, parent and child have memory of their own as usual; the
// parent's device goes on with the parent's.
//
// Every function is safe from any thread. The lock inside is a leaf: nothing else is locked under it.
#pragma once

#include <stdint.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "provider/common/mutex.hpp"
#include "roce/host/ports.hpp"

namespace dapple::soft {

// The number of regions and windows that one device can have together. A power of two.
inline constexpr uint32_t kMaxMemoryEntries = 1 << 18;
// Rights that need kLocalWrite beside them (IBTA 10.6.3.1).
inline constexpr uint32_t kRemoteChanges = roce::kRemoteWrite | roce::kRemoteAtomic;

class GpuMemory;
class OnDemandPages;

enum class RegionKind : uint8_t {
  kPlain,     // the memory is there for as long as the region
  kOnDemand,  // the program may unmap, remap and protect it at any time: an access without the memory or its right
              // fails
  kDmabuf,    // mapped from a dma-buf, whose exporter is told of each access
  kNull,      // no memory: reads give zeros, and writes are dropped. No peer reaches it
  kGpu,       // the CPU cannot reach the memory: a GPU's library copies (gpu_memory.hpp)
};

struct RegionConfig {
  uint32_t domain = 0;
  std::byte* memory = nullptr;
  uint64_t length = 0;
  uint64_t iova = 0;  // the address by which the keys know the first byte; 0 with kZeroBased
  uint32_t access = 0;
  RegionKind kind = RegionKind::kPlain;
  int dmabuf = -1;                 // the descriptor, for kDmabuf; it stays open for as long as the region
  OnDemandPages* pages = nullptr;  // of kOnDemand, if they are counted; they live for as long as the region
  GpuMemory* gpu = nullptr;        // of kGpu, for which `memory` is an address of the GPU; the same holds
};

// Tells whether [address, address + length) is within [start, start + size).
inline bool within(uint64_t address, uint64_t length, uint64_t start, uint64_t size) {
  const uint64_t offset = address - start;
  return address >= start && offset <= size && length <= size - offset;
}

// What a valid key stands for.
struct KeyHolder {
  bool is_window = false;
  // Of a window of type 2: the queue pair that has bound it, which alone may be reached by the key. Otherwise none.
  std::optional<uint32_t> qpn;
  uint32_t domain = 0;
  uint32_t access = 0;
  uint64_t start = 0;  // the address of the first byte for the key
  uint64_t length = 0;
  RegionKind kind = RegionKind::kPlain;
  const std::byte* memory = nullptr;  // the first byte
  const char* problem = nullptr;      // of kGpu: the reason of the last copy that has failed
};

enum class WindowType : uint8_t { kType1 = 1, kType2 = 2 };

// The reason why a window cannot be bound (IBTA 10.6.7.2).
enum class BindObstacle : uint8_t {
  kNone,
  kNoWindow,
  kWindowOfAnotherDomain,  // than the queue pair's
  kRights,                 // that no window has
  kBound,                  // a window of type 2 must be invalidated first
  kNoBytes,                // for a window of type 2
  kZeroBased,              // a window of type 1
  kNoRegion,
  kRegionOfAnotherDomain,
  kRegionWithoutBinding,  // lacks kWindowBind
  kRegionWithoutWriting,  // lacks kLocalWrite, and the window has rights to change its bytes
  kZeroBasedRegion,
  kOutside,  // of the region
};

class MemoryTable final : public roce::Memory {
 public:
  // random: any 32 bits that differ from start to start.
  explicit MemoryTable(uint32_t random);
  ~MemoryTable();
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;

  // The functions of the verbs return 0 or an errno.

  // The key is local and remote key at once, and never 0. EINVAL: rights that do not go together; ENOMEM.
  int add_region(const RegionConfig& config, uint32_t& key);
  // EBUSY while windows are bound to it. The key stays the same. Nothing has changed after an error.
  int change_region(uint32_t key, const RegionConfig& config);
  int region_config(uint32_t key, RegionConfig& config);
  // The program has brought in these bytes of an on-demand region, by advice.
  void note_prefetch(uint32_t key, uint64_t address, uint64_t length);
  // False if the key is not valid: it belongs to nothing, or to a window that is not bound.
  bool find_holder(uint32_t key, KeyHolder& holder);
  // Whether the key is that of a window that is not bound now.
  bool is_unbound_window(uint32_t key);
  // EBUSY while windows are bound to it. No access is in progress afterwards.
  int remove_region(uint32_t key);

  // bind_window() can bind a window of type 1 any number of times, a window of type 2 only while it is not bound. Only
  // the lowest byte of the new key is the program's choice.
  int add_window(uint32_t domain, WindowType type, uint32_t& key);
  // `key` may have any tag. A bound window is unbound.
  int remove_window(uint32_t key);
  // The obstacle that bind_window() would meet, without binding.
  BindObstacle bind_obstacle(roce::Accessor who, const roce::WindowBind& bind);

  // Uses a piece of local memory while no call can take it away.
  class Borrower {
   public:
    // `done`: the bytes before this piece. Return false to end the loan.
    virtual bool use(std::byte* memory, size_t done, size_t size) = 0;
    // The same for a piece of an on-demand region, which is there now. The program may unmap it meanwhile, so only the
    // kernel may touch it.
    virtual bool use_on_demand(std::byte* memory, size_t done, size_t size) { return use(memory, done, size); }
    // The same for a piece in a GPU, which no pointer reaches. A borrower that only looks goes on behind it.
    virtual bool pass_gpu() { return false; }

   protected:
    ~Borrower() = default;
  };
  // Lends the pieces of `size` bytes from `offset` in the segments, in order; checks as gather() and scatter() do.
  // kFailed if the borrower ended it.
  roce::Fault lend(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset, size_t size,
                   bool write, Borrower& borrower);
  // The same for a peer's range, in one piece.
  roce::Fault lend_to_peer(roce::Accessor who, const roce::RemoteRange& range, uint32_t access, Borrower& borrower);

  // roce::Memory.
  roce::Fault check_remote(roce::Accessor who, const roce::RemoteRange& range, uint32_t access) override;
  roce::Fault write(roce::Accessor who, const roce::RemoteRange& range, const std::byte* from) override;
  roce::Fault read(roce::Accessor who, const roce::RemoteRange& range, std::byte* to) override;
  roce::Fault compare_swap(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t compare, uint64_t swap,
                           uint64_t& original) override;
  roce::Fault fetch_add(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t add, uint64_t& original) override;
  roce::Fault atomic_write(roce::Accessor who, uint32_t rkey, uint64_t address, uint64_t value) override;
  roce::Fault flush(roce::Accessor who, const roce::RemoteRange& range, uint32_t type) override;
  roce::Fault check_local(roce::Accessor who, std::span<const roce::Segment> segments, bool write) override;
  roce::Fault gather(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset, std::byte* to,
                     size_t size) override;
  roce::Fault scatter(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                      const std::byte* from, size_t size) override;
  roce::Fault scatter_loan(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset,
                           const roce::Loan& loan) override;
  roce::Fault bind_window(roce::Accessor who, const roce::WindowBind& bind) override;
  roce::Fault invalidate_local(roce::Accessor who, uint32_t rkey) override;
  roce::Fault invalidate_remote(roce::Accessor who, uint32_t rkey) override;

 private:
  enum class Kind : uint8_t { kFree, kRegion, kWindow1, kWindow2 };

  // Fields below `users` change under mutex_, with the key invalid and no user left.
  struct Entry {
    std::atomic<uint32_t> valid_key{0};  // 0 while nothing may be reached by it
    std::atomic<uint32_t> users{0};
    uint32_t key = 0;
    std::atomic<Kind> kind{Kind::kFree};
    uint32_t domain = 0;
    uint32_t qpn = 0;  // of a bound window of type 2
    uint32_t access = 0;
    uint64_t start = 0;  // the address by which the key knows memory[0]
    uint64_t length = 0;
    std::byte* memory = nullptr;
    Entry* region = nullptr;     // that a window is bound to
    uint32_t bound_windows = 0;  // to this region
    uint32_t own_domain = 0;     // the domain of an entry that is apart; otherwise the same as `domain`
    RegionKind region_kind = RegionKind::kPlain;  // also of the region of a window
    int dmabuf = -1;
    OnDemandPages* pages = nullptr;  // as dmabuf
    GpuMemory* gpu = nullptr;        // as dmabuf

    // Its place in memory for an address that is within it.
    std::byte* at(uint64_t address) const {
      return reinterpret_cast<std::byte*>(reinterpret_cast<uintptr_t>(memory) + (address - start));
    }
  };
  static constexpr uint32_t kApart = UINT32_MAX;  // no protection domain has this number

  static constexpr uint32_t kChunkSize = 1024;
  static constexpr uint32_t kChunks = kMaxMemoryEntries / kChunkSize;

  // One access in progress. Empty if the key is not valid.
  class Use;
  // An access to an entry that is apart (apart_access.hpp).
  class ApartAccess;
  static void set_region(Entry& entry, const RegionConfig& config);

  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  Entry* entry_at(uint32_t key) const;
  Entry* find(uint32_t key, Kind kind);
  Entry* find_window(uint32_t key);
  Entry* allocate();
  static void revoke(Entry& entry);
  static void unbind(Entry& window);
  void release(Entry& entry);
  BindObstacle bind_obstacle(roce::Accessor who, const roce::WindowBind& bind, Entry*& window, Entry*& region);
  roce::Fault invalidate(roce::Accessor who, uint32_t rkey);

  static std::byte* reach_remote(const Entry& entry, roce::Accessor who, uint64_t address, uint64_t length,
                                 uint32_t access);
  static std::byte* reach_local(const Entry& entry, roce::Accessor who, uint64_t address, uint64_t length,
                                uint32_t access);
  template <typename Touch, typename Copy>
  static roce::Fault with_remote_apart(const Entry& entry, roce::Accessor who, uint64_t address, uint64_t length,
                                       uint32_t access, Touch touch, Copy copy);
  template <typename Copy>
  static roce::Fault with_part_apart(const Entry& entry, roce::Accessor who, const roce::Segment& segment,
                                     uint64_t offset, size_t done, size_t size, uint32_t access, Copy copy);
  template <typename Operation>
  roce::Fault with_word(roce::Accessor who, uint32_t rkey, uint64_t address, uint32_t access, Operation operation);
  template <typename Copy>
  roce::Fault with_part(roce::Accessor who, const roce::Segment& segment, uint64_t offset, size_t done, size_t size,
                        uint32_t access, Copy copy);
  template <typename Copy>
  roce::Fault with_parts(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset, size_t size,
                         uint32_t access, Copy copy);
  template <typename Copy>
  roce::Fault with_bytes(roce::Accessor who, std::span<const roce::Segment> segments, uint64_t offset, size_t size,
                         uint32_t access, Copy copy);

  Mutex mutex_{LockRank::kMemoryTable};
  uint32_t reach_;  // slots that are taken in turn
  uint32_t used_ = 0;
  uint32_t next_index_;
  uint32_t lap_;
  uint32_t random_;
  std::atomic<Entry*> chunks_[kChunks] = {};
};

}  // namespace dapple::soft
