// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "udapl/core/lock.hpp"
#include "udapl/core/memory/rmr.hpp"

namespace dapple::udapl {

// The windows of an IA and the target of each. The table also counts the bound windows of each LMR, which cannot be
// freed while it has any. A window is found by its rmr_context, and the windows of an Ep from there; nothing walks over
// all windows. Binding allocates nothing.
//
// Threads: internally locked on any IA. The table takes no other lock, except through the holder of binding().
class WindowTable {
 public:
  struct State {
    Binding binding;
    uint32_t context;
    Ep* bound_on;  // where the last bind was posted; null if nowhere
  };

  // Held while a window is bound: no other thread binds, and no queue pair of a possible bind is destroyed. Comes
  // before an Ep's data path mutex in the order of locks.
  [[nodiscard]] std::unique_lock<SmallMutex> binding() { return std::unique_lock(binding_); }

  // Throws std::bad_alloc.
  void add(Rmr& rmr);
  void remove(Rmr& rmr);

  // Do not use the binding's LMR: another thread may free it.
  State state(const Rmr& rmr) const;
  // Records a bind that is about to be posted on ep. Returns the earlier target.
  State begin(Rmr& rmr, Ep& ep, const Binding& binding);
  // The bind could not be posted: everything is as it was.
  void undo(Rmr& rmr, const State& before);
  void set_context(Rmr& rmr, uint32_t context);
  void unbind(Rmr& rmr);

  // A bind posted on ep has failed. rmr may be gone.
  void failed(const Rmr* rmr, const Ep& ep);
  // A peer has invalidated the window with this rmr_context.
  void invalidated(uint32_t context);
  // The queue pair of ep is about to be destroyed. Unbinds and replaces the type 2 windows that were bound on it.
  // Returns an errno if the device keeps one of them.
  [[nodiscard]] int forget(Ep& ep);
  // False if the device has no such window: forget() could not replace the old one.
  bool provide_window(Rmr& rmr);
  // Swaps the device's window with another one. The caller holds binding().
  void exchange_window(Rmr& rmr, verbs::Mw& other);

  // The target of the window with this rmr_context, if the zone has such a window. Do not use its LMR, as above.
  std::optional<Binding> find(uint32_t context, const Pz& pz) const;

 private:
  void bind(Rmr& rmr, const Binding& binding);
  void place(Rmr& rmr, uint32_t context);
  void displace(Rmr& rmr);
  static void bind_on(Rmr& rmr, Ep* ep);
  Rmr* bound_as(uint32_t context) const;
  Rmr*& bucket_of(uint32_t context);

  SmallMutex binding_;
  mutable SmallMutex mutex_;
  std::unordered_set<Rmr*> windows_;
  // Chains of bound windows through Rmr::next_in_bucket_, as many as a power of two and no fewer than windows.
  std::vector<Rmr*> buckets_;
};

}  // namespace dapple::udapl
