// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The table that a process publishes for the peers that copy bytes to and from its memory: the keys of its regions, and
// its connected queue pairs. It is a file in memory that the owner has mapped writable and the peers read-only.
//
// An entry is alive while its first word is not 0. The other words change only while it is dead and no peer uses it
// (announcements.hpp). A peer finds an entry by the lower bits of its number. If all places for these bits are taken,
// the entry is not published, and packets serve it.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "provider/soft/placement/guard_page.hpp"

namespace dapple::soft {

struct KeyDescription {
  uint32_t key = 0;
  uint32_t domain = 0;
  uint32_t access = 0;  // roce::Access
  uint64_t address = 0;
  uint64_t length = 0;
};

struct QpDescription {
  uint32_t qpn = 0;
  uint32_t peer_qpn = 0;
  uint32_t domain = 0;
  uint32_t access = 0;
  uint8_t own_address[16] = {};
  uint8_t peer_address[16] = {};
};

struct PublishedKey {
  std::atomic<uint32_t> alive;  // the key
  std::atomic<uint32_t> domain;
  std::atomic<uint64_t> address;
  std::atomic<uint64_t> length;
  std::atomic<uint32_t> access;
  uint32_t unused;

  static constexpr uint32_t bits(uint32_t key) { return key >> 8; }
  void set(const KeyDescription& from) {
    domain.store(from.domain, std::memory_order_relaxed);
    address.store(from.address, std::memory_order_relaxed);
    length.store(from.length, std::memory_order_relaxed);
    access.store(from.access, std::memory_order_relaxed);
  }
};

struct PublishedQp {
  std::atomic<uint32_t> alive;  // the queue pair's number
  std::atomic<uint32_t> peer_qpn;
  std::atomic<uint32_t> domain;
  std::atomic<uint32_t> access;
  std::atomic<uint64_t> addresses[4];
  uint64_t unused[2];

  static constexpr uint32_t bits(uint32_t qpn) { return qpn; }
  void set(const QpDescription& from) {
    peer_qpn.store(from.peer_qpn, std::memory_order_relaxed);
    domain.store(from.domain, std::memory_order_relaxed);
    access.store(from.access, std::memory_order_relaxed);
    uint64_t words[4];
    words_of(from, words);
    for (int i = 0; i < 4; i++) addresses[i].store(words[i], std::memory_order_relaxed);
  }
  bool has_addresses_of(const QpDescription& wanted) const {
    uint64_t words[4], different = 0;
    words_of(wanted, words);
    for (int i = 0; i < 4; i++) different |= addresses[i].load(std::memory_order_relaxed) ^ words[i];
    return different == 0;
  }

 private:
  static void words_of(const QpDescription& from, uint64_t (&words)[4]) {
    memcpy(words, from.own_address, sizeof from.own_address);
    memcpy(words + 2, from.peer_address, sizeof from.peer_address);
  }
};

static_assert(sizeof(PublishedKey) == 32 && sizeof(PublishedQp) == 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Entries with a common number in their lower bits share a bucket. An entry's ticket is its place, and never 0.
template <typename Entry, uint32_t kBuckets>
struct PublishedEntries {
  static constexpr uint32_t kPlaces = 4;
  static constexpr uint32_t kCount = kBuckets * kPlaces;
  Entry entries[kCount];

  static constexpr uint32_t first_of(uint32_t number) { return Entry::bits(number) % kBuckets * kPlaces; }
  Entry& at(uint32_t ticket) {
    assert(0 < ticket && ticket <= kCount);
    return entries[ticket - 1];
  }
  const Entry& at(uint32_t ticket) const {
    assert(0 < ticket && ticket <= kCount);
    return entries[ticket - 1];
  }
  // The ticket of the living entry with this number, or 0.
  uint32_t find(uint32_t number) const {
    const uint32_t first = first_of(number);
    for (uint32_t place = first; number != 0 && place < first + kPlaces; place++) {
      if (entries[place].alive.load(std::memory_order_relaxed) == number) return place + 1;
    }
    return 0;
  }
};

struct PublishedTable {
  // A peer tries whether it reaches this process: it finds `nonce` at that address, and may write to its own word of
  // the echoes. Both are in the owner's private memory.
  alignas(64) uint64_t nonce;
  uint64_t nonce_address;
  uint64_t echoes_address;  // uint64_t[kMaxSlots], by the peer's slot
  Guard guard;
  alignas(64) PublishedEntries<PublishedKey, 1024> keys;
  PublishedEntries<PublishedQp, 512> qps;
};

}  // namespace dapple::soft
