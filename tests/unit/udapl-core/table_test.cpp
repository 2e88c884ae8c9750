// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The provider table of both versions: the answer of every slot.
#include <cstring>
#include <set>
#include <string>

#include "tests/unit/udapl-registry/checks.hpp"
#include "udapl/functions/convert.hpp"
#include "udapl/functions/dat.hpp"
#include "udapl/functions/provider.hpp"

using namespace dapple::udapl;

namespace {

constexpr bool kIs12 = DAT_VERSION_MAJOR == 1;
constexpr size_t kSlots = kIs12 ? 68 : 79;

// A function with the type of this version's slot.
template <class Pointer>
struct FakeOpen;
template <class... Arguments>
struct FakeOpen<DAT_RETURN (*)(Arguments...)> {
  static DAT_RETURN open(Arguments...) { return DAT_SUCCESS; }
};
constexpr auto fake_open = &FakeOpen<DAT_IA_OPEN_FUNC>::open;

// Calls a slot with only zeroes.
template <class... Arguments>
DAT_RETURN call(DAT_RETURN (*slot)(Arguments...)) {
  return slot(Arguments{}...);
}

template <class Visit>
void for_each_slot(const DAT_PROVIDER& t, Visit visit) {
  visit("ia_open", t.ia_open_func);
#define SLOT(SUBTYPE, NAME) visit(#NAME, t.NAME##_func);
#include "udapl/api/functions.def"
}

void check_words(const DAT_PROVIDER& table) {
  constexpr size_t kDataWords = 2;
  static_assert(sizeof table == (kDataWords + kSlots) * sizeof(void*));
  const void* words[kDataWords + kSlots];
  std::memcpy(words, &table, sizeof words);
  for (size_t i = kDataWords; i < kDataWords + kSlots; ++i) CHECK(words[i] != nullptr);
}

void make_table__no_slot_is_empty() {
  const DAT_PROVIDER table = functions::make_table("name", fake_open);
  check_words(table);
  CHECK_EQUAL(reinterpret_cast<uintptr_t>(table.extension), kIs12 ? 0xda12U : 0xda20U);
  CHECK_EQUAL(reinterpret_cast<uintptr_t>(functions::dead_table().extension), kIs12 ? 0xda12U : 0xda20U);
  CHECK_EQUAL(table.device_name, std::string("name"));
  CHECK(table.ia_open_func == fake_open);
  int slots = 0;
  for_each_slot(table, [&slots](const char*, auto slot) {
    ++slots;
    CHECK(slot != nullptr);
  });
  CHECK_EQUAL(slots, static_cast<int>(kSlots));
}

void make_table__each_slot_has_a_function_of_its_own() {
  std::set<const void*> seen;
  int slots = 0;
  for_each_slot(functions::make_table("name", fake_open), [&](const char* name, auto slot) {
    ++slots;
    if (!seen.insert(reinterpret_cast<const void*>(slot)).second) std::cout << name << " twice" << std::endl;
  });
  CHECK_EQUAL(seen.size(), slots);
}

void make_table__a_null_handle_is_refused() {
  for_each_slot(functions::make_table("name", fake_open), [](const char* name, auto slot) {
    const std::string text = name;
    // These functions have no kind of handle to check: the registry refuses a null handle before.
    const bool any_handle = text == "ia_open" || text.find("_context") != std::string::npos ||
                            text == "get_handle_type" || text == "handle_extendedop";
    if (any_handle) return;
    const DAT_RETURN status = call(slot);
    if (DAT_GET_TYPE(status) != DAT_INVALID_HANDLE) std::cout << name << std::endl;
    CHECK_EQUAL(status & ~DAT_UINT32{0xffff}, DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
  });
}

void dead_table__every_slot_says_invalid_handle() {
  check_words(functions::dead_table());
  for_each_slot(functions::dead_table(), [](const char* name, auto slot) {
    const DAT_RETURN status = call(slot);
    if (DAT_GET_TYPE(status) != DAT_INVALID_HANDLE) std::cout << name << std::endl;
    CHECK_EQUAL(status & ~DAT_UINT32{0xffff}, DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
    CHECK(DAT_GET_SUBTYPE(status) != DAT_NO_SUBTYPE);
  });
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST(make_table__no_slot_is_empty),
      TEST(make_table__each_slot_has_a_function_of_its_own),
      TEST(make_table__a_null_handle_is_refused),
      TEST(dead_table__every_slot_says_invalid_handle),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
