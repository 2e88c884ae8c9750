// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A ring of packets from one process to another, in a file in memory that the writer makes and both map.
//
// One writer and one reader. The reader polls the place of the next entry, so packets cost the transfer of their own
// cache lines and no others. The writer publishes some entries together: it stores the first one last. So a writer that
// is killed leaves whole entries, and two short packets cost one cache line. The next entries begin at a new line, so
// the writer does not write to a line that the reader is still reading. Neither end waits for the other: a full ring
// takes nothing.
//
// The place behind the published entries must be 0. The reader clears each entry at a line's start when it takes it. So
// its own CPU still has the line when it polls there a lap later, and the writer touches the line only to publish.
// Lines that began in the middle of an entry are cleared by the writer.
//
// Neither end trusts the other with more than the packets. The reader copies all that it decides by, and checks it
// before use. The file cannot shrink, and its pages exist from the start, so no access faults, unless the other end
// removes pages on purpose and no memory is left.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "provider/network/addresses.hpp"
#include "provider/soft/proof/challenges.hpp"
#include "provider/soft/same_host/announcements.hpp"
#include "provider/system/owned_fd.hpp"
#include "roce/packet/packet.hpp"

namespace dapple::soft {

inline constexpr size_t kRingBytes = 128 * 1024;
// A packet without ICRC: payload of 4,096, and headers.
inline constexpr size_t kLongestRingPacket = 4096 + 256;
// Whole words.
inline constexpr size_t kCopiedHeaders = (roce::kMaxHeaderSize + 7) / 8 * 8;

enum class EntryKind : uint8_t {
  kPacket,
  kWrap,       // no packet: the next entry is at the ring's start
  kReference,  // a packet with a reference to its bytes (reference.hpp)
};

// A packet may have these parts in front of it, in this order.
enum EntryFront : uint8_t {
  kAddresses = 1,        // Addresses; without them, they are those of the packet before
  kAcknowledgement = 2,  // roce::Acknowledgement, from the queue pair that sends the packet
};

// Is stored and read as one word.
struct RingEntry {
  uint32_t size;  // of the packet; 0: not published
  EntryKind kind;
  uint8_t front;   // bits of EntryFront
  uint16_t space;  // to the next entry, in units of sizeof(RingEntry)
};
static_assert(sizeof(RingEntry) == sizeof(uint64_t));

// The mapping of one end. Not inherited by a child of fork().
class RingMemory {
 public:
  RingMemory() = default;
  ~RingMemory() { unmap(); }
  RingMemory(const RingMemory&) = delete;
  RingMemory& operator=(const RingMemory&) = delete;

  // The writer's: a new file. 0, or an errno.
  int create(OwnedFd& file);
  // The reader's. EINVAL if the file is not a ring.
  int map(int file);

  struct Control {
    alignas(64) std::atomic<uint64_t> read;      // by the reader: bytes that the writer may use again
    alignas(64) std::atomic<uint32_t> sleeping;  // by the reader: it wants to be woken
    alignas(64) std::atomic<uint32_t> waiting;   // by the writer: it wants to be woken when there is room
    alignas(64) std::atomic<uint64_t> fetches;   // by the reader: the nonce of the process whose references it can
                                                 // follow; 0: none
    Announcement announcements[kAnnouncements];  // by the writer: its copies beside the ring
    ProofWords proof;                            // of the writer's right to copy beside the ring
  };
  bool is_mapped() const { return memory_ != nullptr; }
  Control& control() const {
    assert(is_mapped());
    return *reinterpret_cast<Control*>(memory_);
  }
  std::byte* data() const {
    assert(is_mapped());
    return memory_ + kControlBytes;
  }

  static constexpr size_t kLine = 64;  // of the CPU's cache
  static constexpr size_t kControlBytes = 4096;
  static constexpr size_t kFileBytes = kControlBytes + kRingBytes;

 private:
  int map_file(int file);
  void unmap();

  std::byte* memory_ = nullptr;
};

// One thread at a time.
class RingWriter {
 public:
  explicit RingWriter(const RingMemory& memory) : memory_(memory) {}

  // Room for a packet, or null if the ring is full. The addresses are read until commit() or publish_one().
  std::byte* reserve(size_t size, const Addresses& addresses, EntryKind kind = EntryKind::kPacket,
                     const roce::Acknowledgement* acknowledgement = nullptr);
  // The packet in the room of the last reserve() is complete. It is published now or by publish().
  void commit();
  // Publishes the packets that are complete.
  void publish();
  // The same as commit() and publish(), for one packet alone.
  void publish_one();
  // After one of these two, and a full fence: true if the reader sleeps, and no earlier call has reported this. The
  // fence is between the entries and the look at the reader's mark; RingReader::sleep() has the counterpart.
  bool must_wake();
  // After reserve() has failed: the reader wakes this end when there is room. False if there is room now.
  bool wait_for_room();

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  bool make_room(size_t bytes);
  bool has_become_free(size_t needed);
  void append(const RingEntry& entry);
  RingEntry take_reserved();
  void store_last();
  void fill_line(RingEntry& last);
  void show(uint64_t place, const RingEntry& first);
  void note_inner_lines(size_t bytes);

  const RingMemory& memory_;
  uint64_t written_ = 0;     // counts up; the place is modulo kRingBytes
  uint64_t read_ = 0;        // control().read when it was last needed
  uint64_t simple_end_ = 0;  // entries that end before have room, and do not pass the ring's end
  // Of each line: it may begin with a packet's bytes.
  std::array<bool, kRingBytes / RingMemory::kLine> is_inner_ = {};
  // An entry as a word, or 0. A processor would wait if single fields were stored and then loaded as a word.
  uint64_t reserved_ = 0;
  const Addresses* reserved_addresses_ = nullptr;
  Addresses addresses_ = {};  // of the last packet that is complete
  // The entries that are not published yet: publish() stores the first of them last, and it gives the last one the rest
  // of its line.
  bool has_unpublished_ = false;
  uint64_t first_place_ = 0, last_place_ = 0;
  RingEntry first_ = {}, last_ = {};
};

struct RingPacket {
  EntryKind kind;
  const Addresses* addresses;         // a copy, valid until the next call of next() or peek()
  std::byte headers[kCopiedHeaders];  // a copy of the first bytes
  size_t headers_size;                // of them, whole or in part
  bool has_acknowledgement;
  roce::Acknowledgement acknowledgement;
  // In the ring, until release(). The writer should leave them alone, and may change them.
  std::span<const std::byte> bytes;
};

// One thread at a time.
class RingReader {
 public:
  explicit RingReader(const RingMemory& memory) : memory_(memory) {}

  enum class Next { kNothing, kPacket, kBroken };
  // kBroken: no writer of ours has written this, and the ring is of no use any more; further calls have no meaning.
  Next next(RingPacket& packet);
  // The same, and the packet stays the next one. Its writer may change it until then.
  Next peek(RingPacket& packet);
  // After some calls of next(): the writer may use the space of the packets that were read. True if the writer waits
  // for it.
  [[nodiscard]] bool release();
  bool empty() const;
  // Announces that this end will not look any more until it is woken. Look at empty() afterwards.
  void sleep();
  void stay_awake() { memory_.control().sleeping.store(0, std::memory_order_relaxed); }

 private:
  // Asserts the conditions that hold between two calls.
  void assert_consistent() const;
  template <bool kTake>
  Next look(uint64_t& position, Addresses& new_addresses, RingPacket& packet) const;

  const RingMemory& memory_;
  Addresses addresses_ = {};         // of the last packet
  Addresses peeked_addresses_ = {};  // of a packet that peek() has found, if its entry has them
  uint64_t read_ = 0;
  uint64_t released_ = 0;
};

}  // namespace dapple::soft
