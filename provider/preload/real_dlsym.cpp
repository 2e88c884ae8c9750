// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/real_dlsym.hpp"

#include <elf.h>
#include <link.h>
#include <stdint.h>

#include <atomic>

namespace dapple::preload {
namespace {

// A sanitizer interposes strcmp(), and may not be ready.
bool same(const char* one, const char* other) {
  for (; *one == *other; ++one, ++other) {
    if (*one == '\0') return true;
  }
  return false;
}

bool ends_with_file(const char* path, const char* file) {
  const char* last = path;
  for (; *path != '\0'; ++path) {
    if (*path == '/') last = path + 1;
  }
  return same(last, file);
}

// The symbols of a loaded library, by its table of GNU's kind, which each library of a distribution has.
class Symbols {
 public:
  explicit Symbols(const link_map& library) : base_(library.l_addr) {
    for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_SYMTAB) symbols_ = at<ElfW(Sym)>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_STRTAB) names_ = at<char>(entry->d_un.d_ptr);
      if (entry->d_tag == DT_GNU_HASH) hash_ = at<uint32_t>(entry->d_un.d_ptr);
    }
  }

  void* find(const char* name) const {
    if (symbols_ == nullptr || names_ == nullptr || hash_ == nullptr) return nullptr;
    // The number of buckets, the first symbol in them, the number of words of the filter, and its shift.
    const uint32_t count = hash_[0];
    const uint32_t first = hash_[1];
    const auto* buckets = hash_ + 4 + hash_[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t* chain = buckets + count;
    const uint32_t wanted = hash_of(name);
    uint32_t index = buckets[wanted % count];
    if (index < first) return nullptr;
    for (;; ++index) {
      const uint32_t hash = chain[index - first];
      const ElfW(Sym)& symbol = symbols_[index];
      if ((hash | 1) == (wanted | 1) && symbol.st_shndx != SHN_UNDEF && same(names_ + symbol.st_name, name)) {
        return reinterpret_cast<void*>(base_ + symbol.st_value);
      }
      if ((hash & 1) != 0) return nullptr;
    }
  }

 private:
  // The loader writes addresses into the table, but for architectures on which it is read-only.
  template <typename Type>
  const Type* at(ElfW(Addr) address) const {
    return reinterpret_cast<const Type*>(address < base_ ? base_ + address : address);
  }

  static uint32_t hash_of(const char* name) {
    uint32_t hash = 5381;
    for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
    return hash;
  }

  ElfW(Addr) base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const uint32_t* hash_ = nullptr;
};

// The C library has them since 2.34, and libdl had them before.
void* find(const char* name) {
  for (const link_map* library = _r_debug.r_map; library != nullptr; library = library->l_next) {
    if (!ends_with_file(library->l_name, "libc.so.6") && !ends_with_file(library->l_name, "libdl.so.2")) continue;
    if (void* found = Symbols(*library).find(name)) return found;
  }
  return nullptr;
}

template <typename Function>
Function kept(std::atomic<Function>& place, const char* name) {
  Function function = place.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = reinterpret_cast<Function>(find(name));
    place.store(function, std::memory_order_release);
  }
  return function;
}

constinit std::atomic<Dlsym> kept_dlsym = nullptr;
constinit std::atomic<Dlvsym> kept_dlvsym = nullptr;

}  // namespace

Dlsym real_dlsym() {
  return kept(kept_dlsym, "dlsym");
}

Dlvsym real_dlvsym() {
  return kept(kept_dlvsym, "dlvsym");
}

}  // namespace dapple::preload
