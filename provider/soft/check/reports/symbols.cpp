// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/symbols.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "provider/soft/check/reports/loaded_heap.hpp"
#include "provider/soft/check/reports/scripts.hpp"
#include "provider/source_lines/debug_information.hpp"
#include "provider/source_lines/libdw.hpp"
#include "provider/source_lines/loaded_code.hpp"

namespace dapple::soft::check {
namespace {

constexpr size_t kLongName = 120;

// Leaves out what is between these brackets, as "<...>", if they are in pairs: an operator's name may have one.
void leave_out(std::string& name, char open, char close) {
  std::string rest;
  int depth = 0;
  for (const char letter : name) {
    if (letter == close) depth--;
    if (depth == 0) rest += letter;
    if (letter != open) continue;
    if (depth++ == 0) rest += "...";
  }
  if (depth == 0) name = rest;
}

// As c++filt(1) writes it. A function of C may have the name of a mangled type, and stays as it is.
void demangle(std::string& name) {
  if (!name.starts_with("_Z")) return;
  const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr),
                                                        free);
  if (readable != nullptr) name = readable.get();
}

// Without the template's arguments, and then without the parameters.
void shorten(std::string& name) {
  if (name.size() > kLongName) leave_out(name, '<', '>');
  if (name.size() > kLongName) leave_out(name, '(', ')');
}

// A sanitizer's own code, and its function in place of the C library's.
bool is_of_sanitizer(const Frame& frame) {
  constexpr std::string_view kPrefixes[] = {"__sanitizer::", "__asan::", "__interceptor_"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return frame.function.starts_with(prefix); });
}

// The name of a file without its folder.
std::string_view name_of(const char* path) {
  const std::string_view all = path;
  return all.substr(all.rfind('/') + 1);
}

// True for dapple's librpma, which has functions that the original lacks. The program may have loaded it anywhere.
bool is_own_librpma(const char* file, const void* address) {
  return name_of(file).starts_with("librpma.so") && source_lines::module_defines(address, "rpma_peer_has_feature");
}

bool is_of_rdma_core(const Frame& frame) {
  const std::string_view file = name_of(frame.module.c_str());
  return file.starts_with("libibverbs") || file.starts_with("librdmacm");
}

// The frames of one address: its function, after those that are inlined there.
std::vector<Frame> frames_at(const source_lines::DebugInformation& information, const Frame& known, uint64_t address) {
  std::vector<Frame> frames;
  for (const source_lines::SourcePlace& place : information.find(address)) {
    Frame frame = known;
    if (!place.function.empty()) frame.function = place.function;
    frame.source = place.source;
    frame.line = place.line;
    frames.push_back(frame);
  }
  if (frames.empty()) frames.push_back(known);
  for (Frame& frame : frames) {
    demangle(frame.function);
    shorten(frame.function);
  }
  return frames;
}

}  // namespace

Callers callers_of(const Stack& stack) {
  Callers callers = {.all = {}, .script = stack.script};
  for (int i = 0; i < stack.count; i++) {
    Caller caller;
    caller.address = reinterpret_cast<uintptr_t>(stack.callers[i]);
    const source_lines::LoadedCode code = source_lines::loaded_code_at(stack.callers[i]);
    if (code.file != nullptr) {
      if (name_of(code.file).starts_with("libdapple")) {
        caller.code = Caller::Code::kDevice;
      } else if (is_own_librpma(code.file, stack.callers[i])) {
        caller.code = Caller::Code::kOwnLibrpma;
      } else if (stack.script != 0 && Scripts::get().is_interpreter(reinterpret_cast<const void*>(code.base))) {
        caller.code = Caller::Code::kInterpreter;
      }
      caller.known.module = code.file;
      caller.known.offset = caller.address - code.base;
      if (code.function != nullptr) caller.known.function = code.function;
    }
    callers.all.push_back(std::move(caller));
  }
  return callers;
}

std::vector<Frame> frames_of(const Callers& callers) {
  std::vector<Frame> frames;
  const source_lines::DebugInformation information;
  bool in_device = false;
  for (const Caller& caller : callers.all) {
    switch (caller.code) {
      case Caller::Code::kDevice:
        // A sanitizer's backtrace() begins with a frame of its own.
        if (!in_device) frames.clear();
        in_device = true;
        continue;
      case Caller::Code::kOwnLibrpma:
        // The functions of libibverbs that it has called.
        if (std::all_of(frames.begin(), frames.end(), is_of_rdma_core)) frames.clear();
        continue;
      case Caller::Code::kInterpreter:
        for (const ScriptLine& line : Scripts::get().lines(callers.script))
          frames.push_back({caller.known.module, 0, line.function, line.file, line.line});
        return frames;
      case Caller::Code::kOther:
        break;
    }
    // The call is the instruction before the return address.
    for (const Frame& frame : frames_at(information, caller.known, caller.address - 1)) {
      // The caller of main() belongs to the C library. Programs without debug information have no name for it.
      if (frame.function == "__libc_start_call_main") return frames;
      if (frames.empty() && is_of_sanitizer(frame)) continue;
      frames.push_back(frame);
      if (frame.function == "main") return frames;
    }
  }
  return frames;
}

bool called_by_rdma_cm(const Stack& stack) {
  bool in_device = false;
  for (int i = 0; i < stack.count; i++) {
    Dl_info info;
    if (dladdr(stack.callers[i], &info) == 0 || info.dli_fname == nullptr) return false;
    const std::string_view file = name_of(info.dli_fname);
    if (file.starts_with("libdapple")) {
      in_device = true;
    } else if (in_device && !file.starts_with("libibverbs")) {
      return file.starts_with("librdmacm");
    }
  }
  return false;
}

void prepare_symbols() {
  source_lines::libdw();
  loaded_heap();
  // libdw calls this, and the preloaded library asks the dynamic linker at the first call.
  char path[PATH_MAX];
  [[maybe_unused]] const char* found = realpath("/proc/self/fd", path);
  // The first call of backtrace() loads a library.
  Stack::here();
}

}  // namespace dapple::soft::check
