// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/memory/window_table.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/memory/lmr.hpp"
#include "udapl/core/memory/pz.hpp"

namespace dapple::udapl {

void WindowTable::add(Rmr& rmr) {
  std::lock_guard guard(mutex_);
  if (windows_.size() >= buckets_.size()) {
    std::vector<Rmr*> before(std::max<size_t>(16, buckets_.size() * 2));
    before.swap(buckets_);
    for (Rmr* first : before) {
      while (Rmr* const moved = first) {
        first = moved->next_in_bucket_;
        Rmr*& bucket = bucket_of(moved->context_);
        moved->next_in_bucket_ = std::exchange(bucket, moved);
      }
    }
  }
  assert(!windows_.contains(&rmr));
  windows_.insert(&rmr);
}

void WindowTable::remove(Rmr& rmr) {
  std::lock_guard guard(mutex_);
  bind(rmr, {});
  bind_on(rmr, nullptr);
  [[maybe_unused]] const size_t erased = windows_.erase(&rmr);
  assert(erased == 1 && rmr.context_ == 0);
}

WindowTable::State WindowTable::state(const Rmr& rmr) const {
  std::lock_guard guard(mutex_);
  return {rmr.binding_, rmr.context_, rmr.bound_on_};
}

// The low byte of a context counts the binds of one window.
Rmr*& WindowTable::bucket_of(uint32_t context) {
  return buckets_[((context >> 8) * 0x9e3779b1U ^ context) & (buckets_.size() - 1)];
}

Rmr* WindowTable::bound_as(uint32_t context) const {
  if (context == 0 || buckets_.empty()) return nullptr;
  Rmr* rmr = const_cast<WindowTable*>(this)->bucket_of(context);
  while (rmr && rmr->context_ != context) rmr = rmr->next_in_bucket_;
  return rmr;
}

// The rmr_context of a bound window; 0 if it has none yet.
void WindowTable::place(Rmr& rmr, uint32_t context) {
  displace(rmr);
  assert(rmr.binding_.lmr && rmr.context_ == 0);
  rmr.context_ = context;
  if (context) rmr.next_in_bucket_ = std::exchange(bucket_of(context), &rmr);
}

void WindowTable::displace(Rmr& rmr) {
  if (rmr.context_ == 0) return;
  Rmr** link = &bucket_of(rmr.context_);
  while (*link != &rmr) {
    assert(*link);
    link = &(*link)->next_in_bucket_;
  }
  *link = rmr.next_in_bucket_;
  rmr.context_ = 0;
}

void WindowTable::bind(Rmr& rmr, const Binding& binding) {
  if (binding.lmr) binding.lmr->windows().fetch_add(1, std::memory_order_acq_rel);
  assert(!rmr.binding_.lmr || rmr.binding_.lmr->windows().load(std::memory_order_relaxed) > 0);
  if (rmr.binding_.lmr) rmr.binding_.lmr->windows().fetch_sub(1, std::memory_order_acq_rel);
  rmr.binding_ = binding;
  if (!binding.lmr) displace(rmr);
}

void WindowTable::bind_on(Rmr& rmr, Ep* ep) {
  if (rmr.bound_on_ == ep) return;
  if (rmr.bound_on_) {
    assert(*rmr.link_on_ep_ == &rmr);
    *rmr.link_on_ep_ = rmr.next_on_ep_;
    if (rmr.next_on_ep_) rmr.next_on_ep_->link_on_ep_ = rmr.link_on_ep_;
  }
  rmr.bound_on_ = ep;
  if (!ep) return;
  rmr.link_on_ep_ = &ep->windows();
  rmr.next_on_ep_ = std::exchange(ep->windows(), &rmr);
  if (rmr.next_on_ep_) rmr.next_on_ep_->link_on_ep_ = &rmr.next_on_ep_;
}

WindowTable::State WindowTable::begin(Rmr& rmr, Ep& ep, const Binding& binding) {
  std::lock_guard guard(mutex_);
  const State before{rmr.binding_, rmr.context_, rmr.bound_on_};
  bind(rmr, binding);
  bind_on(rmr, &ep);
  return before;
}

void WindowTable::undo(Rmr& rmr, const State& before) {
  std::lock_guard guard(mutex_);
  bind(rmr, before.binding);
  bind_on(rmr, before.bound_on);
  if (rmr.binding_.lmr) place(rmr, before.context);
}

void WindowTable::set_context(Rmr& rmr, uint32_t context) {
  std::lock_guard guard(mutex_);
  if (rmr.binding_.lmr) place(rmr, context);
}

void WindowTable::unbind(Rmr& rmr) {
  std::lock_guard guard(mutex_);
  bind(rmr, {});
}

void WindowTable::failed(const Rmr* rmr, const Ep& ep) {
  std::lock_guard guard(mutex_);
  const auto found = windows_.find(const_cast<Rmr*>(rmr));
  if (found != windows_.end() && (*found)->bound_on_ == &ep) bind(**found, {});
}

void WindowTable::invalidated(uint32_t context) {
  std::lock_guard guard(mutex_);
  if (Rmr* const rmr = bound_as(context)) bind(*rmr, {});
}

int WindowTable::forget(Ep& ep) {
  std::lock_guard guard(mutex_);
  while (Rmr* const rmr = ep.windows()) {
    if (rmr->for_ep()) {
      // For the device the window may still belong to that queue pair, which then could not be destroyed. A new window
      // belongs to none.
      if (int error = verbs::destroy(rmr->mw_)) return error;
      rmr->mw_.reset(ibv_alloc_mw(rmr->pz_->pd(), rmr->mw_type_));
      bind(*rmr, {});
    }
    bind_on(*rmr, nullptr);
  }
  return 0;
}

bool WindowTable::provide_window(Rmr& rmr) {
  std::lock_guard guard(mutex_);
  if (!rmr.mw_) rmr.mw_.reset(ibv_alloc_mw(rmr.pz_->pd(), rmr.mw_type_));
  return rmr.mw_ != nullptr;
}

void WindowTable::exchange_window(Rmr& rmr, verbs::Mw& other) {
  std::lock_guard guard(mutex_);
  std::swap(rmr.mw_, other);
}

std::optional<Binding> WindowTable::find(uint32_t context, const Pz& pz) const {
  std::lock_guard guard(mutex_);
  const Rmr* const rmr = bound_as(context);
  if (!rmr || &rmr->pz() != &pz) return std::nullopt;
  return rmr->binding_;
}

}  // namespace dapple::udapl
