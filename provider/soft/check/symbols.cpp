// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/symbols.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <stdlib.h>

#include <memory>
#include <string_view>

#include "provider/soft/check/debug_information.hpp"

namespace dapple::soft::check {
namespace {

// As c++filt(1) writes it. A function of C may have the name of a mangled type, and stays as it is.
void demangle(std::string& name) {
  if (!name.starts_with("_Z")) return;
  const std::unique_ptr<char, void (*)(void*)> readable(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, nullptr),
                                                        free);
  if (readable != nullptr) name = readable.get();
}

bool is_of_device(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("libdapple");
}

}  // namespace

std::vector<Frame> frames_of(const Stack& stack) {
  std::vector<Frame> frames;
  const DebugInformation information;
  bool in_device = false;
  for (int i = 0; i < stack.count; i++) {
    const auto address = reinterpret_cast<uintptr_t>(stack.callers[i]);
    Frame frame;
    Dl_info info;
    if (dladdr(stack.callers[i], &info) != 0 && info.dli_fname != nullptr) {
      if (is_of_device(info.dli_fname)) {
        // A sanitizer's backtrace() begins with a frame of its own.
        if (!in_device) frames.clear();
        in_device = true;
        continue;
      }
      frame.module = info.dli_fname;
      frame.offset = address - reinterpret_cast<uintptr_t>(info.dli_fbase);
      if (info.dli_sname != nullptr) frame.function = info.dli_sname;
    }
    // The call is the instruction before the return address.
    information.find(address - 1, frame.function, frame.source, frame.line);
    demangle(frame.function);
    frames.push_back(frame);
    // The caller of main() belongs to the C library. Programs without debug information have no name for it.
    if (frame.function == "__libc_start_call_main") {
      frames.pop_back();
      break;
    }
    if (frame.function == "main") break;
  }
  return frames;
}

void prepare_symbols() {
  load_debug_information();
  // The first call of backtrace() loads a library.
  Stack::here();
}

}  // namespace dapple::soft::check
