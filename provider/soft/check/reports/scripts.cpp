// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/check/reports/scripts.hpp"

#include <dlfcn.h>

#include <cassert>

#include "provider/soft/check/reports/cached_stack.hpp"
#include "provider/soft/check/reports/known_stacks.hpp"
#include "provider/soft/check/reports/stack.hpp"

namespace dapple::soft::check {
namespace {

constexpr size_t kMaxLines = 24;

// Functions of Python's C API, 3.9 and later, which are in the program or in a library that it has loaded.
struct Python {
  int (*has_lock)() = nullptr;
  int (*disable_collection)() = nullptr;
  int (*enable_collection)() = nullptr;
  void* (*error)() = nullptr;
  void (*clear_error)() = nullptr;
  void* (*frame)() = nullptr;  // borrowed
  void* (*caller)(void* frame) = nullptr;
  void* (*code)(void* frame) = nullptr;
  int (*line)(void* frame) = nullptr;
  void* (*attribute)(void* object, const char* name) = nullptr;
  const char* (*text)(void* object) = nullptr;
  void (*add)(void* object) = nullptr;
  void (*release)(void* object) = nullptr;
};

template <typename Function>
bool take(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

const Python* python() {
  static Python found;
  static const bool there = take("PyEval_GetFrame", found.frame) && take("PyGILState_Check", found.has_lock) &&
                            take("PyGC_Disable", found.disable_collection) &&
                            take("PyGC_Enable", found.enable_collection) && take("PyErr_Occurred", found.error) &&
                            take("PyErr_Clear", found.clear_error) && take("PyFrame_GetBack", found.caller) &&
                            take("PyFrame_GetCode", found.code) && take("PyFrame_GetLineNumber", found.line) &&
                            take("PyObject_GetAttrString", found.attribute) && take("PyUnicode_AsUTF8", found.text) &&
                            take("Py_IncRef", found.add) && take("Py_DecRef", found.release);
  return there ? &found : nullptr;
}

std::string text_of(const Python& py, void* object, const char* attribute) {
  void* value = py.attribute(object, attribute);
  const char* text = value == nullptr ? nullptr : py.text(value);
  std::string copy = text == nullptr ? "" : text;
  if (value != nullptr) py.release(value);
  if (text == nullptr) py.clear_error();
  return copy;
}

// The thread holds the interpreter's lock, and no exception is on its way.
std::vector<ScriptLine> lines_of_thread(const Python& py) {
  std::vector<ScriptLine> lines;
  void* frame = py.frame();
  if (frame != nullptr) py.add(frame);
  while (frame != nullptr && lines.size() < kMaxLines) {
    ScriptLine line;
    if (void* code = py.code(frame); code != nullptr) {
      line = {text_of(py, code, "co_name"), text_of(py, code, "co_filename"), py.line(frame)};
      py.release(code);
    }
    lines.push_back(line);
    void* caller = py.caller(frame);
    py.release(frame);
    frame = caller;
  }
  if (frame != nullptr) py.release(frame);
  return lines;
}

}  // namespace

Scripts::Scripts() {
  Dl_info info;
  if (python() != nullptr && dladdr(reinterpret_cast<const void*>(python()->frame), &info) != 0)
    interpreter_ = info.dli_fbase;
}

Scripts& Scripts::get() {
  // Threads that outlive main() use it.
  static Scripts* const scripts = new Scripts;
  return *scripts;
}

bool Scripts::is_interpreter(const void* module) const {
  return interpreter_ != nullptr && interpreter_ == module;
}

uint32_t Scripts::here() {
  if (interpreter_ == nullptr) return 0;
  const Python& py = *python();
  if (py.has_lock() == 0 || py.error() != nullptr) return 0;
  // A collection could run any code of the program.
  const int collects = py.disable_collection();
  const std::vector<ScriptLine> lines = lines_of_thread(py);
  if (collects != 0) py.enable_collection();
  if (lines.empty()) return 0;
  const std::lock_guard lock(mutex_);
  assert(known_.size() == numbers_.size() && known_.size() <= kMax);
  if (const auto found = numbers_.find(lines); found != numbers_.end()) return found->second;
  if (known_.size() == kMax) return 0;
  const auto number = static_cast<uint32_t>(known_.size() + 1);
  known_.push_back(&numbers_.emplace(lines, number).first->first);
  return number;
}

std::vector<ScriptLine> Scripts::lines(uint32_t number) {
  const std::lock_guard lock(mutex_);
  assert(number <= known_.size());
  return number == 0 ? std::vector<ScriptLine>() : *known_[number - 1];
}

std::string bytes_of(const Stack& stack) {
  return std::string(reinterpret_cast<const char*>(stack.callers),
                     sizeof stack.callers[0] * static_cast<size_t>(stack.count)) +
         std::to_string(stack.script);
}

KnownStack here() {
  if (CallStack::present_ != nullptr) return *CallStack::present_;
  const KnownStack without_script = cached_stack();
  const uint32_t script = Scripts::get().here();
  if (script == 0) return without_script;
  Stack stack = without_script;
  stack.script = script;
  return KnownStacks::get().known(stack);
}

}  // namespace dapple::soft::check
