// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/object.hpp"

namespace dapple::dat {

class Pz;

// DAT_MEM_PRIV_FLAGS.
enum MemPrivilege : uint32_t {
  kLocalRead = 0x01,
  kRemoteRead = 0x02,
  kLocalWrite = 0x10,
  kRemoteWrite = 0x20,
  kAllPrivileges = kLocalRead | kRemoteRead | kLocalWrite | kRemoteWrite,
};

// Local memory region over virtual memory. Immutable; the memory stays the consumer's and must outlive the LMR.
class Lmr : public Object {
 public:
  static constexpr Kind kKind = Kind::kLmr;

  // Registration is a sync point: on a device that is not coherent the region is cleaned and invalidated once. The
  // caller holds the control mutex.
  static Result<Lmr*> create(Ia& ia, Pz& pz, void* address, uint64_t length, uint32_t privileges);
  // The caller holds the control mutex.
  static Result<> free(Lmr& lmr);

  Pz& pz() const { return pz_; }
  uint64_t address() const { return address_; }
  uint64_t length() const { return length_; }
  uint32_t privileges() const { return privileges_; }
  // lmr_context and rmr_context; the latter is 0 unless remote access was asked for.
  uint32_t context() const { return mr_->lkey; }
  uint32_t remote_context() const { return privileges_ & (kRemoteRead | kRemoteWrite) ? mr_->rkey : 0; }

  // Whether [address, address + length) lies inside; an empty range may also lie at the end.
  bool contains(uint64_t address, uint64_t length) const {
    return address >= address_ && length <= length_ && address - address_ <= length_ - length;
  }

 private:
  friend class Arena<Lmr>;
  Lmr(Ia& ia, Pz& pz, verbs::Mr mr, void* address, uint64_t length, uint32_t privileges);

  Pz& pz_;
  uint64_t address_;
  uint64_t length_;
  uint32_t privileges_;
  verbs::Mr mr_;
};

}  // namespace dapple::dat
