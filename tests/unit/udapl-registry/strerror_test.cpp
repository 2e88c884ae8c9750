// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include <dat2/udat.h>

#include <string>

#include "tests/unit/udapl-registry/checks.hpp"

namespace {

/// Both strings of a value.
void expect(DAT_RETURN value, DAT_RETURN status, const char* type, const char* subtype) {
  const char* major = nullptr;
  const char* minor = nullptr;
  CHECK_EQUAL(dat_strerror(value, &major, &minor), status);
  CHECK_EQUAL(std::string(major), type);
  CHECK_EQUAL(std::string(minor), subtype);
}

void dat_strerror__spells_every_constant() {
  // The facts hold all constants; the positions of the values distinguish the two enumerations.
#define DAT20_CONSTANT(name, value) {#name, value},
#define DAT20_POINTER(name, value)
#define DAT20_STRING(name, value)
#define DAT20_SIZE(type, size)
#define DAT20_MEMBER(type, member, offset, size)
#define DAT20_FUNCTION(name, args)
#define DAT20_SLOT(slot, args)
  static const struct {
    const char* name;
    long long value;
  } constants[] = {
#include "tests/abi/dat20_facts.inc"
  };
  int types = 0;
  int subtypes = 0;
  bool in_types = false;
  bool in_subtypes = false;
  for (const auto& constant : constants) {
    const std::string name = constant.name;
    in_types = in_types || name == "DAT_SUCCESS";
    in_subtypes = in_subtypes || name == "DAT_NO_SUBTYPE";
    const auto value = static_cast<DAT_RETURN>(constant.value);
    if (in_types) {
      expect(DAT_CLASS_ERROR | value, DAT_SUCCESS, constant.name, "");
      ++types;
    }
    if (in_subtypes && name != "DAT_NO_SUBTYPE") {
      expect(DAT_CLASS_ERROR | DAT_INVALID_STATE | value, DAT_SUCCESS, "DAT_INVALID_STATE", constant.name);
      ++subtypes;
    }
    in_types = in_types && name != "DAT_NOT_IMPLEMENTED";
    in_subtypes = in_subtypes && name != "DAT_THREAD_SAFETY_NOT_FOUND";
  }
  CHECK_EQUAL(types, 26);
  CHECK_EQUAL(subtypes, 0x67);
}

void dat_strerror__class_does_not_matter() {
  expect(DAT_SUCCESS, DAT_SUCCESS, "DAT_SUCCESS", "");
  expect(DAT_CLASS_WARNING | DAT_QUEUE_EMPTY, DAT_SUCCESS, "DAT_QUEUE_EMPTY", "");
}

void dat_strerror__unknown_values_are_refused_and_printable() {
  const DAT_RETURN refused = DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1;
  expect(0x00ff0000, refused, "unknown error", "");
  expect(DAT_INVALID_HANDLE | 0x68, refused, "DAT_INVALID_HANDLE", "unknown error");
}

void dat_strerror__outputs_may_be_null() {
  const char* text = nullptr;
  CHECK_EQUAL(dat_strerror(DAT_ABORT, nullptr, nullptr), DAT_SUCCESS);
  CHECK_EQUAL(dat_strerror(DAT_ABORT, &text, nullptr), DAT_SUCCESS);
  CHECK_EQUAL(std::string(text), "DAT_ABORT");
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(dat_strerror__spells_every_constant),
      TEST(dat_strerror__class_does_not_matter),
      TEST(dat_strerror__unknown_values_are_refused_and_printable),
      TEST(dat_strerror__outputs_may_be_null),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
