// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/proof/challenges.hpp"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cassert>

namespace dapple::soft {
namespace {

class SipHash {
 public:
  explicit SipHash(const Secret& key)
      : v0_(key.words[0] ^ 0x736F6D6570736575),
        v1_(key.words[1] ^ 0x646F72616E646F6D),
        v2_(key.words[0] ^ 0x6C7967656E657261),
        v3_(key.words[1] ^ 0x7465646279746573) {}

  void add(uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
  }
  // `bytes`: the number of bytes that were added.
  uint64_t end(uint64_t bytes) {
    add(bytes << 56);
    v2_ ^= 0xFF;
    for (int i = 0; i < 4; i++) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_, v1_, v2_, v3_;
};

}  // namespace

uint64_t seal_of(const Secret& secret, uint64_t address, const Parties& parties) {
  SipHash hash(secret);
  hash.add(address);
  hash.add(uint64_t{parties.peer_slot} << 32 | parties.target_slot);
  return hash.end(2 * sizeof(uint64_t));
}

bool Challenges::open() {
  hidden_ = page_.map();
  return hidden_ || page_.map_anywhere();
}

Secret* Challenges::secret(uint32_t number) const {
  return reinterpret_cast<Secret*>(page_.address()) + number - 1;  // NOLINT(performance-no-int-to-ptr)
}

uint32_t Challenges::make(const Parties& parties, Challenge& challenge) {
  assert(page_.address() != 0);
  bool* const free = std::find(taken_, taken_ + kMax, false);
  if (free == taken_ + kMax) return 0;
  const auto number = static_cast<uint32_t>(free - taken_) + 1;
  Secret* const made = secret(number);
  if (getrandom(made, sizeof *made, 0) != sizeof *made) return 0;
  *free = true;
  challenge.address = reinterpret_cast<uintptr_t>(made);
  challenge.seal = seal_of(*made, challenge.address, parties);
  return number;
}

bool Challenges::end(uint32_t number, const Secret& answer) {
  assert(0 < number && number <= kMax && taken_[number - 1]);
  taken_[number - 1] = false;
  Secret* const made = secret(number);
  const bool same = made->words[0] == answer.words[0] && made->words[1] == answer.words[1];
  *made = {};
  return same;
}

}  // namespace dapple::soft
