// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/source_lines/debug_information.hpp"

#include <unistd.h>

#include <string_view>

#include "provider/source_lines/libdw.hpp"

namespace dapple::source_lines {
namespace {

// DWARF 5, 7.5.
constexpr int kClassType = 0x02, kLexicalBlock = 0x0B, kStructureType = 0x13, kInlinedSubroutine = 0x1D,
              kSubprogram = 0x2E, kNamespace = 0x39;
constexpr unsigned kCallFile = 0x58, kCallLine = 0x59, kLinkageName = 0x6E, kCompDir = 0x1B;

constexpr int kMaxDepth = 64;

// The functions at one address: the concrete one first, and in it those that are inlined.
class Search {
 public:
  Search(const Libdw& library, uint64_t address) : library_(library), address_(address) {}

  // Looks at the entries inside of this one. True if it has found a function.
  bool look_into(Die& parent, int depth) {
    Die entry;
    if (depth == kMaxDepth || library_.child(&parent, &entry) != 0) return false;
    do {
      const int tag = library_.tag(&entry);
      const bool is_function = tag == kSubprogram || tag == kInlinedSubroutine;
      if (is_function || tag == kLexicalBlock) {
        if (library_.haspc(&entry, address_) != 1) continue;
        if (is_function) functions_.push_back(entry);
        look_into(entry, depth + 1);
        if (is_function || !functions_.empty()) return true;
      } else if (tag == kNamespace || tag == kClassType || tag == kStructureType) {
        if (look_into(entry, depth + 1)) return true;
      }
    } while (library_.siblingof(&entry, &entry) == 0);
    return false;
  }
  std::vector<Die>& functions() { return functions_; }

 private:
  const Libdw& library_;
  const uint64_t address_;
  std::vector<Die> functions_;
};

std::string text_of(const Libdw& library, Die& entry, unsigned attribute) {
  Attribute room;
  Attribute* found = library.attr_integrate(&entry, attribute, &room);
  const char* text = found == nullptr ? nullptr : library.formstring(found);
  return text == nullptr ? "" : text;
}

uint64_t number_of(const Libdw& library, Die& entry, unsigned attribute) {
  Attribute room;
  Attribute* found = library.attr_integrate(&entry, attribute, &room);
  uint64_t number = 0;
  return found != nullptr && library.formudata(found, &number) == 0 ? number : 0;
}

std::string name_of(const Libdw& library, Die& function) {
  if (std::string linked = text_of(library, function, kLinkageName); !linked.empty()) return linked;
  const char* name = library.diename(&function);
  return name == nullptr ? "" : name;
}

// The compilation unit of an address. Not every compiler writes .debug_aranges, by which the library would find it.
Die* unit_at(const Libdw& library, Dwfl_Module* module, uint64_t address, uint64_t& bias) {
  if (Die* unit = library.module_addrdie(module, address, &bias); unit != nullptr) return unit;
  for (Die* unit = nullptr; (unit = library.module_nextcu(module, unit, &bias)) != nullptr;) {
    if (library.haspc(unit, address - bias) == 1) return unit;
  }
  return nullptr;
}

std::string path_of(const Libdw& library, Die& unit, const char* file) {
  if (file == nullptr) return "";
  if (file[0] == '/') return file;
  const std::string folder = text_of(library, unit, kCompDir);
  return folder.empty() ? file : folder + "/" + file;
}

void set_line(const Libdw& library, Die& unit, uint64_t address, SourcePlace& place) {
  Dwarf_Line_s* line = library.getsrc_die(&unit, address);
  if (line == nullptr) return;
  place.source = path_of(library, unit, library.linesrc(line, nullptr, nullptr));
  library.lineno(line, &place.line);
}

// The line from which an inlined function is called.
void set_call(const Libdw& library, Die& unit, Die& inlined, SourcePlace& caller) {
  Dwarf_Files_s* files = nullptr;
  size_t count = 0;
  if (library.getsrcfiles(&unit, &files, &count) != 0) return;
  const uint64_t number = number_of(library, inlined, kCallFile);
  if (number >= count) return;
  caller.source = path_of(library, unit, library.filesrc(files, number, nullptr, nullptr));
  caller.line = static_cast<int>(number_of(library, inlined, kCallLine));
}

}  // namespace

DebugInformation::DebugInformation() {
  if (libdw() == nullptr) return;
  modules_ = libdw()->begin(&libdw()->callbacks);
  if (modules_ == nullptr) return;
  libdw()->linux_proc_report(modules_, getpid());
  libdw()->report_end(modules_, nullptr, nullptr);
}

DebugInformation::~DebugInformation() {
  if (modules_ != nullptr) libdw()->end(modules_);
}

std::vector<SourcePlace> DebugInformation::find(uint64_t address) const {
  std::vector<SourcePlace> places;
  if (modules_ == nullptr) return places;
  const Libdw& library = *libdw();
  Dwfl_Module* module = library.addrmodule(modules_, address);
  if (module == nullptr) return places;
  const char* symbol = library.module_addrname(module, address);
  uint64_t bias = 0;
  Die* unit = unit_at(library, module, address, bias);
  if (unit == nullptr) {
    if (symbol != nullptr) places.push_back({symbol, "", 0});
    return places;
  }
  Search search(library, address - bias);
  search.look_into(*unit, 0);
  std::vector<Die>& functions = search.functions();
  for (size_t i = functions.size(); i-- > 0;) {
    SourcePlace place;
    place.function = name_of(library, functions[i]);
    if (i + 1 == functions.size()) {
      set_line(library, *unit, address - bias, place);
    } else {
      set_call(library, *unit, functions[i + 1], place);
    }
    places.push_back(place);
  }
  if (places.empty()) {
    places.emplace_back();
    set_line(library, *unit, address - bias, places.back());
  }
  // Local functions of C++ have no other complete name.
  std::string& concrete = places.back().function;
  if (symbol == nullptr) return places;
  if (concrete.empty() || (!concrete.starts_with("_Z") && std::string_view(symbol).starts_with("_Z")))
    concrete = symbol;
  return places;
}

}  // namespace dapple::source_lines
