// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/source_lines/libdw.hpp"

#include <dlfcn.h>

#include "provider/source_lines/debug_file.hpp"

namespace dapple::source_lines {
namespace {

template <typename Function>
bool take(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

bool take_all(void* file, Libdw& made) {
#define DAPPLE_DWFL(name) take(file, "dwfl_" #name, made.name)
#define DAPPLE_DWARF(name) take(file, "dwarf_" #name, made.name)
  return DAPPLE_DWFL(begin) && DAPPLE_DWFL(end) && DAPPLE_DWFL(linux_proc_report) && DAPPLE_DWFL(report_end) &&
         DAPPLE_DWFL(addrmodule) && DAPPLE_DWFL(module_addrname) && DAPPLE_DWFL(module_addrdie) &&
         DAPPLE_DWFL(module_nextcu) && DAPPLE_DWFL(build_id_find_debuginfo) && DAPPLE_DWARF(haspc) &&
         DAPPLE_DWARF(child) && DAPPLE_DWARF(siblingof) && DAPPLE_DWARF(tag) && DAPPLE_DWARF(diename) &&
         DAPPLE_DWARF(attr_integrate) && DAPPLE_DWARF(formstring) && DAPPLE_DWARF(formudata) &&
         DAPPLE_DWARF(getsrc_die) && DAPPLE_DWARF(linesrc) && DAPPLE_DWARF(lineno) && DAPPLE_DWARF(getsrcfiles) &&
         DAPPLE_DWARF(filesrc) && take(file, "dwfl_linux_proc_find_elf", made.callbacks.find_elf);
#undef DAPPLE_DWFL
#undef DAPPLE_DWARF
}

// Not dwfl_standard_find_debuginfo, which asks servers.
int find_debuginfo(Dwfl_Module* module, void** data, const char* name, uint64_t base, const char* file,
                   const char* link, uint32_t crc, char** found) {
  const int fd = libdw()->build_id_find_debuginfo(module, data, name, base, file, link, crc, found);
  if (fd >= 0 || file == nullptr || link == nullptr) return fd;
  return open_linked_file(file, link, crc, found);
}

}  // namespace

const Libdw* libdw() {
  static const Libdw* const loaded = []() -> const Libdw* {
    static Libdw made;
    void* file = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr || !take_all(file, made)) return nullptr;
    made.callbacks.find_debuginfo = find_debuginfo;
    return &made;
  }();
  return loaded;
}

}  // namespace dapple::source_lines
