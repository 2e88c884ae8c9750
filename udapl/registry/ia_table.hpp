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

namespace dapple::registry {

/// The open IAs. In 2.0 a program's IA handle is an index into this table. The table detects a stale handle and
/// distinguishes it from all other handles, which are pointers. In 1.2 the handle is the provider's own pointer, which
/// nobody may read before the table has found it: a program may pass any value. Internally locked; lookup() takes no
/// lock.
class IaTable {
 public:
  /// Every index, as an address, lies in the first page, where no object lives. Also limits the number of open IAs.
  static constexpr std::uintptr_t kSize = 4096;

  /// True if a value can only be an IA handle (or invalid, or NULL).
  static bool is_index(DAT_HANDLE handle) { return reinterpret_cast<std::uintptr_t>(handle) < kSize; }

  /// Converts a program's IA handle, which may be any value, to the provider's handle. NULL if it is no open IA's.
  static DAT_IA_HANDLE lookup(DAT_HANDLE handle) {
    if constexpr (!kNumbersIas) {
      if (is_index(handle)) return nullptr;
      return find_place(handle) < kSize ? handle : nullptr;
    }
    const auto index = reinterpret_cast<std::uintptr_t>(handle);
    return index < kSize ? provider_ias_[index].load(std::memory_order_acquire) : nullptr;
  }

  /// Converts a provider's handle to the program's, or NULL.
  DAT_IA_HANDLE reverse(DAT_IA_HANDLE provider_ia);

  /// Makes a handle for an IA that was opened through `use`; NULL if the table is full. In 2.0 numbers are used in
  /// turn, so that a stale handle stays invalid for as long as possible. Throws bad_alloc.
  DAT_IA_HANDLE insert(DAT_IA_HANDLE provider_ia, const ProviderUse& use);

  /// Claims an IA for closing; empty if it is not open, or already being closed. Lookups still find it until
  /// finish_close(). Blocks until its last PinnedIa is destroyed; there will be no new ones.
  std::optional<ProviderUse> begin_close(DAT_IA_HANDLE handle);
  void cancel_close(DAT_IA_HANDLE handle);
  void finish_close(DAT_IA_HANDLE handle);

  /// Called around a fork; only one runs at a time. The child lacks the threads that hold a PinnedIa.
  void before_fork();
  void after_fork_in_parent();
  /// True if the fork held the lock.
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

  /// In 1.2 provider_ias_ is a hash table: a pointer lies at its first place or behind it, with no NULL in between. A
  /// pointer that has left in the midst of others leaves gone(), which is no handle because it is an index.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is a number
  static DAT_IA_HANDLE gone() { return reinterpret_cast<DAT_IA_HANDLE>(std::uintptr_t{1}); }
  static std::uintptr_t first_place(DAT_HANDLE handle) {
    constexpr int kBits = 12;
    static_assert(std::uintptr_t{1} << kBits == kSize);
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle)) * 0x9e3779b97f4a7c15U >> (64 - kBits);
  }
  static std::uintptr_t next_place(std::uintptr_t place) { return (place + 1) % kSize; }
  /// kSize if the pointer is not in the table.
  static std::uintptr_t find_place(DAT_HANDLE handle) {
    std::uintptr_t place = first_place(handle);
    for (std::uintptr_t looked = 0; looked < kSize; ++looked, place = next_place(place)) {
      const DAT_IA_HANDLE here = provider_ias_[place].load(std::memory_order_acquire);
      if (here == handle) return place;
      if (!here) return kSize;
    }
    return kSize;
  }
  static bool put_in_place(DAT_IA_HANDLE handle);
  static void take_from_place(DAT_IA_HANDLE handle);

  static inline constinit std::array<std::atomic<DAT_IA_HANDLE>, kSize> provider_ias_{};  // in 2.0 [0] stays NULL
  std::mutex mutex_;  // guards everything below, and writes above
  bool fork_has_mutex_ = false;
  std::uintptr_t last_ = 0;
  std::vector<Open> open_;
  std::condition_variable unpinned_;
};

/// This process's table, which is never destroyed.
IaTable& ia_table();

/// An open IA of some name. It stays open as long as this object lives, so its holder must not close it.
class PinnedIa {
 public:
  explicit PinnedIa(const char* ia_name);
  ~PinnedIa();
  PinnedIa(const PinnedIa&) = delete;
  PinnedIa& operator=(const PinnedIa&) = delete;

  /// The provider's handle; NULL if no IA of that name is open, or all of them are being closed.
  DAT_IA_HANDLE provider_ia() const { return provider_ia_; }

 private:
  DAT_IA_HANDLE handle_ = nullptr;
  DAT_IA_HANDLE provider_ia_ = nullptr;
};

}  // namespace dapple::registry
