// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// All ids by number. A number is not reused soon, and each dappled begins with a random one, so an id that its program
// has destroyed is not mistaken for another one.
//
// An id of a dappled that died keeps its number even if a new id has it by then: librdmacm needs numbers below 65,536
// that differ within one program. So ids of two channels may have one number, but each id has its own key.
#pragma once

#include <cstdint>

#include "provider/dappled/rdma_cm/ids/id.hpp"

namespace dapple::dappled::rdma_cm {

class IdTable {
 public:
  static constexpr uint32_t kMax = 32768;

  static constexpr uint32_t kNumbers = 65536;

  explicit IdTable(uint32_t first) : next_(first % kNumbers) {}

  // A number that no id has. There must be one.
  uint32_t unused();
  // New numbers stay far from this one, because the numbers near it may belong to ids that are yet to be restored.
  void keep_away(uint32_t number);
  // The caller has set the number and the channel; add() sets the key. False if there are too many, or another id of
  // the channel has the number.
  bool add(CmId& id);
  void remove(CmId& id);
  CmId* find(const Channel& channel, uint32_t number) const;
  CmId* find_by_key(uint64_t key) const;
  bool has(uint32_t number) const;
  uint32_t size() const { return size_; }
  // Visits all ids. The visitor removes none.
  template <class Visitor>
  void visit(Visitor visitor) {
    for (CmId* id : buckets_) {
      for (; id != nullptr; id = id->same_bucket) visitor(*id);
    }
  }

 private:
  static constexpr uint32_t kBuckets = 4096;
  CmId* bucket(uint32_t number) const { return buckets_[number % kBuckets]; }

  uint32_t next_;
  uint32_t size_ = 0;
  uint64_t added_ = 0;
  CmId* buckets_[kBuckets] = {};
};

}  // namespace dapple::dappled::rdma_cm
