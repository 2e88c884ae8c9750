// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A peer that wants to copy in this process' memory proves that the kernel lets it do so. This process passes no
// descriptor of its memory. It writes a secret to its memory, and shows the secret's address and seal. The peer opens
// the memory itself, reads the secret there, and answers with it.
//
// The seal shows the peer that it has opened the right memory before it tells anybody what it has read there. It cannot
// be inverted. It names both slots, so no process can use the challenge of another one.
#pragma once

#include <atomic>
#include <cstdint>

#include "provider/protocol/right.hpp"
#include "provider/soft/proof/random_page.hpp"

namespace dapple::soft {

struct Secret {
  uint64_t words[2];
};

struct Parties {
  uint32_t target_slot;  // of the process whose memory it is
  uint32_t peer_slot;
};

struct Challenge {
  uint64_t address;  // of the secret
  uint64_t seal;
};

// SipHash-2-4 of the address and the slots, with the secret as the key.
uint64_t seal_of(const Secret& secret, uint64_t address, const Parties& parties);

// The words in memory that both processes share. Neither trusts what the other one writes.
struct ProofWords {
  // By the process whose memory it is. The peer looks at them if `asked` is 1.
  alignas(64) std::atomic<uint64_t> address;
  std::atomic<uint64_t> seal;
  std::atomic<uint32_t> asked;
  // By the peer, last `right`: kGranted, with the secret, or a reason.
  std::atomic<Right> right;
  std::atomic<uint64_t> answer[2];
};
static_assert(std::atomic<Right>::is_always_lock_free);

// One thread at a time.
class Challenges {
 public:
  // False if there is no memory for secrets. Once.
  bool open();
  // Secrets are where other programs have nothing.
  bool are_hidden() const { return hidden_; }

  // Returns the challenge's number, or 0 if there is no room or no random number.
  uint32_t make(const Parties& parties, Challenge& challenge);
  // Ends the challenge. True if it was answered with the secret.
  bool end(uint32_t number, const Secret& answer);

 private:
  static constexpr uint32_t kMax = 255;  // secrets in a page

  Secret* secret(uint32_t number) const;

  RandomPage page_;
  bool hidden_ = false;
  bool taken_[kMax] = {};
};

}  // namespace dapple::soft
