// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The symbols of a loaded library, read without the loader: a look-up takes no lock and no memory, and calls no
// function that a program or a sanitizer may have replaced. So it is safe before any constructor has run.
#pragma once

#include <elf.h>
#include <link.h>
#include <stdint.h>

namespace dapple::preload {

bool same(const char* one, const char* other);

// Uses the hash table of GNU's kind (DT_GNU_HASH), which each library of a distribution has. Of several versions of a
// symbol it takes the default one.
class SymbolTable {
 public:
  explicit SymbolTable(const link_map& library);
  // Null if the library does not define it.
  void* find(const char* name) const;

 private:
  // The loader replaces the offsets in the dynamic section by addresses, except on architectures where that section is
  // read-only.
  template <typename Type>
  const Type* at(ElfW(Addr) address) const {
    return reinterpret_cast<const Type*>(address < base_ ? base_ + address : address);
  }

  ElfW(Addr) base_;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* names_ = nullptr;
  const uint32_t* hash_ = nullptr;
  const ElfW(Half) * versions_ = nullptr;  // of the symbols, if the library has some
};

}  // namespace dapple::preload
