// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/source_lines/loaded_code.hpp"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace dapple::source_lines {
namespace {

using Symbol = ElfW(Sym);

// A module, while the list of modules does not change.
class Module {
 public:
  explicit Module(const dl_phdr_info& info) : info_(info) {
    for (const auto* part = info.dlpi_phdr; part < info.dlpi_phdr + info.dlpi_phnum; part++) {
      if (part->p_type != PT_LOAD) continue;
      begin_ = std::min<uintptr_t>(begin_, info.dlpi_addr + part->p_vaddr);
      end_ = std::max<uintptr_t>(end_, info.dlpi_addr + part->p_vaddr + part->p_memsz);
    }
  }

  bool has(uintptr_t address) const {
    return std::any_of(info_.dlpi_phdr, info_.dlpi_phdr + info_.dlpi_phnum, [&](const ElfW(Phdr) & part) {
      return part.p_type == PT_LOAD && address - (info_.dlpi_addr + part.p_vaddr) < part.p_memsz;
    });
  }
  // The first page.
  uintptr_t base() const { return begin_ & ~(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1); }
  // The program itself has no name in the list.
  const char* file() const { return info_.dlpi_name[0] != '\0' ? info_.dlpi_name : program_invocation_name; }

  // Calls take(symbol, name) for each symbol that the module defines.
  template <typename Take>
  void each_symbol(Take take) const {
    const auto* symbols = at<Symbol>(entry(DT_SYMTAB));
    const auto* names = at<char>(entry(DT_STRTAB));
    const uint64_t names_size = entry(DT_STRSZ);
    if (symbols == nullptr || names == nullptr) return;
    for (uint32_t i = 0, count = symbol_count(); i < count; i++) {
      const Symbol& symbol = symbols[i];
      if (symbol.st_shndx == SHN_UNDEF || (symbol.st_info & 0xF) == STT_TLS || symbol.st_name >= names_size) continue;
      take(symbol, names + symbol.st_name);
    }
  }
  bool contains(const Symbol& symbol, uintptr_t address) const {
    const uintptr_t offset = address - (info_.dlpi_addr + symbol.st_value);
    return offset == 0 || offset < symbol.st_size;
  }

 private:
  // An entry of the dynamic section; 0 if there is none.
  uint64_t entry(int64_t tag) const {
    for (const auto* part = info_.dlpi_phdr; part < info_.dlpi_phdr + info_.dlpi_phnum; part++) {
      if (part->p_type != PT_DYNAMIC) continue;
      const auto* each = reinterpret_cast<const ElfW(Dyn)*>(info_.dlpi_addr + part->p_vaddr);
      for (; each->d_tag != DT_NULL; each++) {
        if (each->d_tag == tag) return each->d_un.d_val;
      }
    }
    return 0;
  }
  // The dynamic linker has changed offsets to addresses, unless the section is read-only.
  template <typename Type>
  const Type* at(uint64_t place) const {
    if (place == 0) return nullptr;
    return reinterpret_cast<const Type*>(place >= begin_ && place < end_ ? place : info_.dlpi_addr + place);
  }
  uint32_t symbol_count() const {
    if (const auto* table = at<uint32_t>(entry(DT_GNU_HASH)); table != nullptr) {
      const uint32_t buckets = table[0], first = table[1], words = table[2];
      const uint32_t* bucket = table + 4 + size_t{words} * sizeof(ElfW(Addr)) / sizeof(uint32_t);
      const uint32_t* chain = bucket + buckets;
      const uint32_t last = buckets == 0 ? 0 : *std::max_element(bucket, bucket + buckets);
      if (last < first) return 0;
      // The end of the last chain has the lowest bit.
      uint32_t end = last;
      while ((chain[end - first] & 1) == 0) end++;
      return end + 1;
    }
    const auto* table = at<uint32_t>(entry(DT_HASH));
    return table == nullptr ? 0 : table[1];
  }

  const dl_phdr_info& info_;
  uintptr_t begin_ = UINTPTR_MAX, end_ = 0;
};

// Calls use(module) for the module that contains the address.
template <typename Use>
void with_module_at(const void* address, Use use) {
  struct Search {
    uintptr_t address;
    Use& use;
  } search = {reinterpret_cast<uintptr_t>(address), use};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* own) {
        const Search& wanted = *static_cast<const Search*>(own);
        const Module module(*info);
        if (!module.has(wanted.address)) return 0;
        wanted.use(module);
        return 1;
      },
      &search);
}

}  // namespace

LoadedCode loaded_code_at(const void* address) {
  LoadedCode found;
  with_module_at(address, [&](const Module& module) {
    found.file = module.file();
    found.base = module.base();
    const Symbol* nearest = nullptr;
    module.each_symbol([&](const Symbol& symbol, const char* name) {
      if (!module.contains(symbol, reinterpret_cast<uintptr_t>(address))) return;
      if (nearest != nullptr && nearest->st_value >= symbol.st_value) return;
      nearest = &symbol;
      found.function = name;
    });
  });
  return found;
}

bool module_defines(const void* address, const char* symbol) {
  bool defines = false;
  with_module_at(address, [&](const Module& module) {
    module.each_symbol([&](const Symbol&, const char* name) { defines = defines || strcmp(name, symbol) == 0; });
  });
  return defines;
}

}  // namespace dapple::source_lines
