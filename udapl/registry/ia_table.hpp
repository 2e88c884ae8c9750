// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "udapl/registry/registry.hpp"
#include "udapl/registry/version.hpp"

namespace dapple::dat {

/// The open IAs. In 2.0 a program's IA handle is an index into this table, which makes a stale one detectable and keeps
/// it apart from every other handle, all of which are pointers. In 1.2 it is the provider's, a pointer itself.
/// Internally locked; lookup() takes no lock.
class IaTable {
 public:
  /// Every index is below the first page, where no object lives.
  static constexpr std::uintptr_t kSize = 4096;

  /// Whether a value can only be an IA handle (or rubbish, or NULL).
  static bool is_index(DAT_HANDLE handle) { return reinterpret_cast<std::uintptr_t>(handle) < kSize; }

  /// The provider's handle of a program's IA handle, or NULL.
  static DAT_IA_HANDLE lookup(DAT_HANDLE handle) {
    if constexpr (!kNumbersIas) return is_index(handle) ? nullptr : handle;
    const auto index = reinterpret_cast<std::uintptr_t>(handle);
    return index < kSize ? provider_ias_[index].load(std::memory_order_acquire) : nullptr;
  }

  /// The reverse: the program's handle of a provider's, or NULL.
  DAT_IA_HANDLE reverse(DAT_IA_HANDLE provider_ia);

  /// A handle for an IA that was opened through `use`; NULL if the table is full. Numbers are handed out in turn, so
  /// that a stale handle stays invalid for as long as possible. Throws bad_alloc.
  DAT_IA_HANDLE insert(DAT_IA_HANDLE provider_ia, const ProviderUse& use);

  /// Claims an IA for closing: nothing if it is not open, or being closed. Lookups go on finding it until
  /// finish_close(). Blocks until the last PinnedIa of it is gone; there will be no others.
  std::optional<ProviderUse> begin_close(DAT_IA_HANDLE handle);
  void cancel_close(DAT_IA_HANDLE handle);
  void finish_close(DAT_IA_HANDLE handle);

  /// Around a fork, of which there is one at a time. The child has not the threads that hold a PinnedIa.
  void before_fork();
  void after_fork_in_parent();
  /// True if the fork had the lock.
  bool after_fork_in_child();

 private:
  friend class PinnedIa;

  struct Open {
    DAT_IA_HANDLE handle;
    DAT_IA_HANDLE provider_ia;
    ProviderUse use;
    bool closing = false;
    int pins = 0;
  };
  std::vector<Open>::iterator find(DAT_IA_HANDLE handle);

  static inline constinit std::array<std::atomic<DAT_IA_HANDLE>, kSize> provider_ias_{};  // [0] stays NULL
  std::mutex mutex_;  // of everything below, and of writing above
  bool fork_has_mutex_ = false;
  std::uintptr_t last_ = 0;
  std::vector<Open> open_;
  std::condition_variable unpinned_;
};

/// The one of this process, never destroyed.
IaTable& ia_table();

/// An open IA of some name, which stays open as long as this lives: who has it must not close it.
class PinnedIa {
 public:
  explicit PinnedIa(const char* ia_name);
  ~PinnedIa();
  PinnedIa(const PinnedIa&) = delete;
  PinnedIa& operator=(const PinnedIa&) = delete;

  /// In the provider's terms; NULL if none of that name is open, or all of them are being closed.
  DAT_IA_HANDLE provider_ia() const { return provider_ia_; }

 private:
  DAT_IA_HANDLE handle_ = nullptr;
  DAT_IA_HANDLE provider_ia_ = nullptr;
};

}  // namespace dapple::dat
