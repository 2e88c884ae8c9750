// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>

#include "ibverbs-glue/verbs.hpp"
#include "udapl/core/arena.hpp"
#include "udapl/core/error.hpp"
#include "udapl/core/memory/pz.hpp"
#include "udapl/core/object.hpp"

namespace dapple::udapl {

class Ep;
class Lmr;

// The target of a window.
struct Binding {
  Lmr* lmr = nullptr;        // null: not bound
  uint32_t lmr_context = 0;  // the LMR's; a reader may use it even if the LMR has been freed
  uint64_t address = 0;      // as in the LMR's segments
  uint64_t length = 0;       // bytes
  uint32_t privileges = 0;
  bool zero_based = false;
};

struct BindRequest {
  Binding target;  // with length 0, and then without an LMR, to unbind
  uint64_t cookie;
  uint32_t flags;
};

// Remote memory region: a memory window. A type 1 window serves every endpoint of its zone. A type 2 window serves only
// the endpoint on which it was bound, and a peer may invalidate it.
//
// Threads: the IA's WindowTable guards the state. Binding is as thread-safe as posting.
class Rmr : public Object {
 public:
  static constexpr Kind kKind = Kind::kRmr;

  // for_ep asks for a type 2 window; otherwise a type 1 window is preferred. MODEL_NOT_SUPPORTED if the device lacks
  // such windows. The caller holds the control mutex.
  static Result<Rmr*> create(Ia& ia, Pz& pz, bool for_ep);
  // Unbinds first if the window is bound. The caller holds the control mutex.
  static Result<> free(Rmr& rmr);

  // Returns the new rmr_context, or 0 for an unbind; the change takes effect at the completion. A bound window may be
  // bound again, and its old rmr_context is stale from then on.
  Result<uint32_t> bind(Ep& ep, const BindRequest& request);

  Pz& pz() const { return *pz_; }
  bool for_ep() const { return mw_type_ == IBV_MW_TYPE_2; }

 private:
  friend class Arena<Rmr>;
  friend class WindowTable;
  Rmr(Ia& ia, Pz& pz, verbs::Mw mw, ibv_mw_type type);
  Result<> check(const Ep& ep, const BindRequest& request) const;
  Result<> post_bind(Ep& ep, const BindRequest& request, bool was_bound, uint32_t& context);

  const UseOf<Pz> pz_;
  ibv_mw_type mw_type_;
  verbs::Mw mw_;  // null only if the window was destroyed with its endpoint and no new one could be made
  Binding binding_;
  uint32_t context_ = 0;    // rmr_context while bound
  Ep* bound_on_ = nullptr;  // where the last bind was posted
  // For the table: the links in a chain of buckets_ while bound, and among the windows of bound_on_.
  Rmr* next_in_bucket_ = nullptr;
  Rmr* next_on_ep_ = nullptr;
  Rmr** link_on_ep_ = nullptr;  // the pointer that points to this window
};

}  // namespace dapple::udapl
