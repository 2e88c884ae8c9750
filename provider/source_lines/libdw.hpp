// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// libdw of elfutils, if the machine has it. It is loaded at run time, so no program depends on it, and no header of it
// is needed. Its interface is stable.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

struct Dwfl;
struct Dwfl_Module;
struct Dwarf_Line_s;
struct Dwarf_Files_s;

namespace dapple::source_lines {

// Dwarf_Die and Dwarf_Attribute of elfutils/libdw.h. The caller has their memory, and only the library looks inside.
struct Die {
  void* address = nullptr;
  void* unit = nullptr;
  void* abbreviation = nullptr;
  long padding = 0;
};
struct Attribute {
  unsigned code = 0;
  unsigned form = 0;
  unsigned char* value = nullptr;
  void* unit = nullptr;
};

// struct Dwfl_Callbacks of elfutils/libdwfl.h.
struct Callbacks {
  void (*find_elf)() = nullptr;  // the library's own
  int (*find_debuginfo)(Dwfl_Module*, void**, const char* name, uint64_t base, const char* file, const char* link,
                        uint32_t crc, char** found) = nullptr;
  void (*section_address)() = nullptr;
  char** debuginfo_path = nullptr;
};

// The functions dwfl_NAME and dwarf_NAME.
struct Libdw {
  Dwfl* (*begin)(const Callbacks*) = nullptr;
  void (*end)(Dwfl*) = nullptr;
  int (*linux_proc_report)(Dwfl*, pid_t) = nullptr;
  int (*report_end)(Dwfl*, int (*)(Dwfl_Module*, void*, const char*, uint64_t, void*), void*) = nullptr;
  Dwfl_Module* (*addrmodule)(Dwfl*, uint64_t) = nullptr;
  const char* (*module_addrname)(Dwfl_Module*, uint64_t) = nullptr;
  Die* (*module_addrdie)(Dwfl_Module*, uint64_t, uint64_t* bias) = nullptr;
  Die* (*module_nextcu)(Dwfl_Module*, Die*, uint64_t* bias) = nullptr;
  int (*build_id_find_debuginfo)(Dwfl_Module*, void**, const char*, uint64_t, const char*, const char*, uint32_t,
                                 char**) = nullptr;

  int (*haspc)(Die*, uint64_t) = nullptr;
  int (*child)(Die*, Die*) = nullptr;
  int (*siblingof)(Die*, Die*) = nullptr;
  int (*tag)(Die*) = nullptr;
  const char* (*diename)(Die*) = nullptr;
  Attribute* (*attr_integrate)(Die*, unsigned, Attribute*) = nullptr;
  const char* (*formstring)(Attribute*) = nullptr;
  int (*formudata)(Attribute*, uint64_t*) = nullptr;
  Dwarf_Line_s* (*getsrc_die)(Die*, uint64_t) = nullptr;
  const char* (*linesrc)(Dwarf_Line_s*, uint64_t*, uint64_t*) = nullptr;
  int (*lineno)(Dwarf_Line_s*, int*) = nullptr;
  int (*getsrcfiles)(Die*, Dwarf_Files_s**, size_t*) = nullptr;
  const char* (*filesrc)(Dwarf_Files_s*, size_t, uint64_t*, uint64_t*) = nullptr;

  Callbacks callbacks;
};

// Null if the machine lacks it. The first call loads it, and it stays loaded.
const Libdw* libdw();

}  // namespace dapple::source_lines
