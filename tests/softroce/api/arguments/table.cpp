// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/softroce/api/arguments/table.hpp"

namespace arguments {
namespace {

const char* const kKindNames[kKinds] = {
    "IA", "PZ", "LMR", "RMR", "EVD", "CNO", "EP", "SRQ", "PSP", "RSP", ONLY_20("CSP", ) "CR"};
const DAT_RETURN_SUBTYPE kSubtypes[kKinds] = {
    DAT_INVALID_HANDLE_IA,          DAT_INVALID_HANDLE_PZ,  DAT_INVALID_HANDLE_LMR,
    DAT_INVALID_HANDLE_RMR,
    DAT_INVALID_HANDLE_EVD_REQUEST,  // for an EVD whose streams do not matter
    DAT_INVALID_HANDLE_CNO,         DAT_INVALID_HANDLE_EP,  DAT_INVALID_HANDLE_SRQ,
    DAT_INVALID_HANDLE_PSP,         DAT_INVALID_HANDLE_RSP, ONLY_20(DAT_INVALID_HANDLE_CSP, ) DAT_INVALID_HANDLE_CR};

uint64_t no_object[64];  // handles that point here point to memory without an object

}  // namespace

void Table::add_wrong_kinds(Argument& argument, Kind kind, DAT_RETURN expected) const {
  for (int other = 0; other < kKinds; ++other) {
    if (other != kind && w.good[other])
      argument.others.push_back({std::string("of kind ") + kKindNames[other], word(w.good[other]), expected});
  }
  argument.others.push_back({"a small integer", 4001, expected});
  argument.others.push_back({"the largest small integer", 4095, expected});
  if (w.freed[kind]) argument.others.push_back({"freed", word(w.freed[kind]), expected});
}

Argument Table::self(Kind kind, DAT_HANDLE handle) const {
  const DAT_RETURN expected = handle_error(kSubtypes[kind]);
  Argument argument = good(handle).also("NULL", nullptr, expected);
  add_wrong_kinds(argument, kind, expected);
  return argument;
}

Argument Table::further(Kind kind) const {
  return further(kind, w.good[kind], kSubtypes[kind]);
}

Argument Table::further(Kind kind, DAT_HANDLE handle, DAT_RETURN_SUBTYPE subtype) const {
  return optional_further(kind, handle, subtype).also("NULL", nullptr, handle_error(subtype));
}

// NULL is not a wrong value here.
Argument Table::optional_further(Kind kind, DAT_HANDLE handle, DAT_RETURN_SUBTYPE subtype) const {
  const DAT_RETURN expected = handle_error(subtype);
  Argument argument = good(handle)
                          .also("of another IA", w.foreign[kind], expected)
                          .also("a pointer to no object", &no_object, expected)
                          .also("a pointer into an object", static_cast<char*>(w.good[kind]) + 8, expected);
  add_wrong_kinds(argument, kind, expected);
  return argument;
}

Argument Table::any_kind(DAT_HANDLE handle) const {
  const DAT_RETURN expected = handle_error(DAT_INVALID_HANDLE1);
  Argument argument = good(handle)
                          .also("NULL", nullptr, expected)
                          .also("a small integer", 4001, expected)
                          .also("the largest small integer", 4095, expected);
  for (int kind = 0; kind < kKinds; ++kind) {
    if (!w.freed[kind]) continue;
    argument.others.push_back({std::string("freed, of kind ") + kKindNames[kind], word(w.freed[kind]), expected});
  }
  return argument;
}

}  // namespace arguments
