// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/object.hpp"

namespace dapple::dat {

class Ep;
class Lmr;
class Pz;

// The target of a window's bind.
struct Binding {
  Lmr* lmr = nullptr;  // null: not bound
  uint64_t address = 0;
  uint64_t length = 0;  // bytes
  uint32_t privileges = 0;
  bool zero_based = false;
};

struct BindRequest {
  Lmr* lmr;          // null with length 0
  uint64_t address;  // in the words of the LMR's segments
  uint64_t length;   // bytes; 0 unbinds
  uint32_t lmr_context;
  uint32_t privileges;
  bool zero_based;
  uint64_t cookie;
  uint32_t flags;
};

// Remote memory region: a memory window. A type 1 window, which every endpoint of its zone serves, or a type 2 window,
// which only the endpoint serves that it was bound on, and which a peer may invalidate.
//
// Threads: the state is guarded by the IA's WindowTable. Binding is as safe as posting.
class Rmr : public Object {
 public:
  static constexpr Kind kKind = Kind::kRmr;

  // for_ep asks for a type 2 window; without it a type 1 window is preferred. MODEL_NOT_SUPPORTED where the device has
  // no such windows. The caller holds the control mutex.
  static Result<Rmr*> create(Ia& ia, Pz& pz, bool for_ep);
  // Unbinds if need be. The caller holds the control mutex.
  static Result<> free(Rmr& rmr);

  // Returns the new rmr_context, 0 after unbinding; neither counts before the completion. A bound window may be bound
  // again, and its old rmr_context is stale from then on.
  Result<uint32_t> bind(Ep& ep, const BindRequest& request);

  Pz& pz() const { return pz_; }
  bool for_ep() const { return mw_type_ == IBV_MW_TYPE_2; }

 private:
  friend class Arena<Rmr>;
  friend class WindowTable;
  Rmr(Ia& ia, Pz& pz, verbs::Mw mw, ibv_mw_type type);
  Result<> check(const Ep& ep, const BindRequest& request) const;
  Result<> post_bind(Ep& ep, const BindRequest& request, bool was_bound, uint32_t& context);

  Pz& pz_;
  ibv_mw_type mw_type_;
  verbs::Mw mw_;  // null only if a fresh one could not be had for one that went with its endpoint
  Binding binding_;
  uint32_t context_ = 0;    // rmr_context while bound
  Ep* bound_on_ = nullptr;  // where the last bind was posted
  // The table's: in a chain of buckets_ while bound, and among the windows of bound_on_.
  Rmr* next_in_bucket_ = nullptr;
  Rmr* next_on_ep_ = nullptr;
  Rmr** link_on_ep_ = nullptr;  // what points to this one
};

}  // namespace dapple::dat
