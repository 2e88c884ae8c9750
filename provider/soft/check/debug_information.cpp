// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/debug_information.hpp"

#include <dlfcn.h>
#include <unistd.h>

struct Dwfl_Module;
struct Dwfl_Line;

namespace dapple::soft::check {
namespace {

// struct Dwfl_Callbacks of elfutils/libdwfl.h. The functions are the library's own, so their arguments do not matter
// here.
struct Callbacks {
  void (*find_elf)() = nullptr;
  void (*find_debuginfo)() = nullptr;
  void (*section_address)() = nullptr;
  char** debuginfo_path = nullptr;
};

struct Library {
  Dwfl* (*begin)(const Callbacks*) = nullptr;
  void (*end)(Dwfl*) = nullptr;
  int (*report_process)(Dwfl*, pid_t) = nullptr;
  int (*report_end)(Dwfl*, int (*)(Dwfl_Module*, void*, const char*, uint64_t, void*), void*) = nullptr;
  Dwfl_Module* (*module_at)(Dwfl*, uint64_t) = nullptr;
  const char* (*function_at)(Dwfl_Module*, uint64_t) = nullptr;
  Dwfl_Line* (*line_at)(Dwfl_Module*, uint64_t) = nullptr;
  const char* (*describe)(Dwfl_Line*, uint64_t*, int*, int*, uint64_t*, uint64_t*) = nullptr;
  const char* (*folder_of)(Dwfl_Line*) = nullptr;
  Callbacks callbacks;
};

template <typename Function>
bool take(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

const Library* library() {
  static const Library* const loaded = []() -> const Library* {
    static Library made;
    void* file = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (file == nullptr) return nullptr;
    // Not dwfl_standard_find_debuginfo, which asks servers.
    const bool all = take(file, "dwfl_begin", made.begin) && take(file, "dwfl_end", made.end) &&
                     take(file, "dwfl_linux_proc_report", made.report_process) &&
                     take(file, "dwfl_report_end", made.report_end) && take(file, "dwfl_addrmodule", made.module_at) &&
                     take(file, "dwfl_module_addrname", made.function_at) &&
                     take(file, "dwfl_module_getsrc", made.line_at) && take(file, "dwfl_lineinfo", made.describe) &&
                     take(file, "dwfl_line_comp_dir", made.folder_of) &&
                     take(file, "dwfl_linux_proc_find_elf", made.callbacks.find_elf) &&
                     take(file, "dwfl_build_id_find_debuginfo", made.callbacks.find_debuginfo);
    return all ? &made : nullptr;
  }();
  return loaded;
}

}  // namespace

void load_debug_information() {
  library();
}

DebugInformation::DebugInformation() {
  if (library() == nullptr) return;
  modules_ = library()->begin(&library()->callbacks);
  if (modules_ == nullptr) return;
  library()->report_process(modules_, getpid());
  library()->report_end(modules_, nullptr, nullptr);
}

DebugInformation::~DebugInformation() {
  if (modules_ != nullptr) library()->end(modules_);
}

void DebugInformation::find(uint64_t address, std::string& function, std::string& source, int& line) const {
  if (modules_ == nullptr) return;
  Dwfl_Module* module = library()->module_at(modules_, address);
  if (module == nullptr) return;
  if (const char* name = library()->function_at(module, address); name != nullptr) function = name;
  Dwfl_Line* found = library()->line_at(module, address);
  if (found == nullptr) return;
  const char* file = library()->describe(found, nullptr, &line, nullptr, nullptr, nullptr);
  if (file == nullptr) return;
  const char* folder = library()->folder_of(found);
  source = file[0] == '/' || folder == nullptr ? file : std::string(folder) + "/" + file;
}

}  // namespace dapple::soft::check
