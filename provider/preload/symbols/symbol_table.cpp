// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/preload/symbols/symbol_table.hpp"

namespace dapple::preload {
namespace {

uint32_t hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

}  // namespace

// A sanitizer interposes strcmp(), and may not be ready.
bool same(const char* one, const char* other) {
  for (; *one == *other; ++one, ++other) {
    if (*one == '\0') return true;
  }
  return false;
}

SymbolTable::SymbolTable(const link_map& library) : base_(library.l_addr) {
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols_ = at<ElfW(Sym)>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) names_ = at<char>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) hash_ = at<uint32_t>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_VERSYM) versions_ = at<ElfW(Half)>(entry->d_un.d_ptr);
  }
}

void* SymbolTable::find(const char* name) const {
  if (symbols_ == nullptr || names_ == nullptr || hash_ == nullptr) return nullptr;
  // The number of buckets, the first symbol in them, the number of words of the filter, and its shift.
  const uint32_t count = hash_[0];
  const uint32_t first = hash_[1];
  const auto* buckets = hash_ + 4 + hash_[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* chain = buckets + count;
  const uint32_t wanted = hash_of(name);
  uint32_t index = buckets[wanted % count];
  if (index < first) return nullptr;
  // Old programs are linked with such a version.
  constexpr ElfW(Half) kHidden = 0x8000;
  void* hidden = nullptr;
  for (;; ++index) {
    const uint32_t hash = chain[index - first];
    const ElfW(Sym)& symbol = symbols_[index];
    if ((hash | 1) == (wanted | 1) && symbol.st_shndx != SHN_UNDEF && same(names_ + symbol.st_name, name)) {
      auto* const found = reinterpret_cast<void*>(base_ + symbol.st_value);
      if (versions_ == nullptr || (versions_[index] & kHidden) == 0) return found;
      hidden = found;
    }
    if ((hash & 1) != 0) return hidden;
  }
}

}  // namespace dapple::preload
