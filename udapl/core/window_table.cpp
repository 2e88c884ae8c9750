// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/core/window_table.hpp"

#include <algorithm>

#include "udapl/core/lmr.hpp"
#include "udapl/core/pz.hpp"

namespace dapple::dat {

void WindowTable::add(Rmr& rmr) {
  std::lock_guard guard(mutex_);
  windows_.insert(&rmr);
}

void WindowTable::remove(Rmr& rmr) {
  std::lock_guard guard(mutex_);
  bind(rmr, {});
  windows_.erase(&rmr);
}

WindowTable::State WindowTable::state(const Rmr& rmr) const {
  std::lock_guard guard(mutex_);
  return {rmr.binding_, rmr.context_};
}

void WindowTable::bind(Rmr& rmr, const Binding& binding) {
  if (binding.lmr) binding.lmr->windows().fetch_add(1, std::memory_order_acq_rel);
  if (rmr.binding_.lmr) rmr.binding_.lmr->windows().fetch_sub(1, std::memory_order_acq_rel);
  rmr.binding_ = binding;
  if (!binding.lmr) rmr.context_ = 0;
}

WindowTable::State WindowTable::begin(Rmr& rmr, Ep& ep, const Binding& binding) {
  std::lock_guard guard(mutex_);
  const State before{rmr.binding_, rmr.context_};
  bind(rmr, binding);
  rmr.bound_on_ = &ep;
  return before;
}

void WindowTable::set_context(Rmr& rmr, uint32_t context) {
  std::lock_guard guard(mutex_);
  if (rmr.binding_.lmr) rmr.context_ = context;
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
  for (Rmr* rmr : windows_) {
    if (rmr->binding_.lmr && rmr->context_ == context) return bind(*rmr, {});
  }
}

int WindowTable::forget(const Ep& ep) {
  std::lock_guard guard(mutex_);
  for (Rmr* rmr : windows_) {
    if (rmr->bound_on_ != &ep) continue;
    if (rmr->for_ep()) {
      // To the device the window may still be that queue pair's, which then could not go. A fresh one is nobody's.
      if (int error = verbs::destroy(rmr->mw_)) return error;
      rmr->mw_.reset(ibv_alloc_mw(rmr->pz_.pd(), rmr->mw_type_));
      bind(*rmr, {});
    }
    rmr->bound_on_ = nullptr;
  }
  return 0;
}

bool WindowTable::provide_window(Rmr& rmr) {
  std::lock_guard guard(mutex_);
  if (!rmr.mw_) rmr.mw_.reset(ibv_alloc_mw(rmr.pz_.pd(), rmr.mw_type_));
  return rmr.mw_ != nullptr;
}

std::optional<Binding> WindowTable::find(uint32_t context) const {
  std::lock_guard guard(mutex_);
  const auto found = std::find_if(windows_.begin(), windows_.end(),
                                  [context](const Rmr* rmr) { return rmr->binding_.lmr && rmr->context_ == context; });
  if (found == windows_.end()) return std::nullopt;
  return (*found)->binding_;
}

}  // namespace dapple::dat
