// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Every function of libdat2, or of libdat, with each argument wrong in turn: it must return the exact status and change
// nothing, and a correct call must then work. The test fails for an exported function without a row in a table, and for
// a parameter that has neither a wrong value nor a mark that there is none.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "tests/softroce/api/arguments/table.hpp"

using arguments::Argument;
using arguments::Function;
using arguments::Table;
using arguments::World;

namespace {

using Fill = void (*)(Table&);
constexpr Fill kFills[] = {arguments::add_registry,  arguments::add_common,    arguments::add_memory,
                           arguments::add_windows,   arguments::add_endpoints, arguments::add_connecting,
                           arguments::add_posts,     arguments::add_srqs,      arguments::add_service_points,
                           arguments::add_rejecting, arguments::add_events,    arguments::add_closing};

const char* spelled(DAT_RETURN status) {
  static char text[2][128];
  static int turn = 0;
  const char* major = "";
  const char* minor = "";
  char* out = text[turn ^= 1];
  dat_strerror(status, &major, &minor);
  std::snprintf(out, sizeof text[0], "0x%08x %s %s", status, major, minor);
  return out;
}

// The functions below count errors instead of asserting, which would leave objects behind.

int call(const Function& function, const uint64_t* words, DAT_RETURN expected, int number, const char* what) {
  const DAT_RETURN found = function.make(words);
  if (found == expected) return 0;
  print_error("%s, argument %d %s: is %s, not %s\n", function.name, number, what, spelled(found), spelled(expected));
  return 1;
}

std::vector<uint64_t> good_words(const Function& function) {
  std::vector<uint64_t> words;
  for (const Argument& argument : function.arguments) words.push_back(argument.good);
  return words;
}

int try_function(const World& w, const Function& function) {
  int failures = 0;
  std::vector<uint64_t> words = good_words(function);
  arguments::settle(w);
  const uint64_t before = arguments::fingerprint(w);
  for (size_t i = 0; i < function.arguments.size(); ++i) {
    for (const auto& other : function.arguments[i].others) {
      const DAT_RETURN expected =
          other.status == arguments::kByNumber ? arguments::argument_error(i + 1) : other.status;
      words[i] = other.value;
      failures += call(function, words.data(), expected, static_cast<int>(i + 1), other.what.c_str());
    }
    words[i] = function.arguments[i].good;
  }
  if (arguments::fingerprint(w) != before) {
    print_error("%s: a refused call has changed something\n", function.name);
    ++failures;
  }
  return failures + call(function, words.data(), function.result, 0, "all good");
}

int try_table(World& w, Fill fill) {
  Table table(w);
  fill(table);
  int failures = 0;
  for (const Function& function : table.functions()) failures += try_function(w, function);
  return failures;
}

template <Fill kFill>
void table__every_argument_wrong(void** state) {
  assert_int_equal(try_table(*static_cast<World*>(*state), kFill), 0);
}

int count_incomplete(World& w) {
  Table table(w);
  int failures = 0;
  for (const Fill fill : kFills) fill(table);
  const auto& functions = table.functions();
  int exported = 0;
  std::istringstream names(EXPORTED_FUNCTIONS);  // from the library's map file
  for (std::string name; names >> name; ++exported) {
    const auto is_it = [&name](const Function& function) { return name == function.name; };
    if (std::any_of(functions.begin(), functions.end(), is_it)) continue;
    print_error("%s is exported and in no table\n", name.c_str());
    ++failures;
  }
  if (exported < ONLY_20(84) ONLY_12(72)) {
    print_error("the map has %d functions only\n", exported);
    ++failures;
  }
  for (const Function& function : functions) {
    if (function.arguments.size() != function.parameters) {
      print_error("%s has %zu parameters and %zu rows\n", function.name, function.parameters,
                  function.arguments.size());
      ++failures;
    }
    for (size_t i = 0; i < function.arguments.size(); ++i) {
      const Argument& argument = function.arguments[i];
      if (argument.is_free != argument.others.empty()) {
        print_error("%s: argument %zu has no wrong value\n", function.name, i + 1);
        ++failures;
      }
    }
  }
  return failures;
}

void tables__are_complete(void** state) {
  assert_int_equal(count_incomplete(*static_cast<World*>(*state)), 0);
}

int count_alive(World& w) {
  int failures = 0;
  Table table(w);
  for (const Fill fill : kFills) fill(table);
  assert_ok(dat_ia_close(w.f.ia, DAT_CLOSE_ABRUPT_FLAG));
  assert_ok(dat_ia_close(w.other.ia, DAT_CLOSE_ABRUPT_FLAG));
  w.f.ia = w.other.ia = DAT_HANDLE_NULL;
  for (const Function& function : table.functions()) {
    const auto& others = function.arguments[0].others;
    const auto freed = std::find_if(others.rbegin(), others.rend(),
                                    [](const auto& other) { return other.what.rfind("freed", 0) == 0; });
    if (freed == others.rend()) continue;  // it is not called on an object
    failures += call(function, good_words(function).data(), freed->status, 1, "of a closed IA");
  }
  return failures;
}

// Also not after the last IA was closed, which ends the provider's last use.
void handles__are_stale_after_the_close(void** state) {
  assert_int_equal(count_alive(*static_cast<World*>(*state)), 0);
}

void handles__know_their_type_and_context(void** state) {
  using namespace arguments;
  static const DAT_HANDLE_TYPE types[kKinds] = {DAT_HANDLE_TYPE_IA,
                                                DAT_HANDLE_TYPE_PZ,
                                                DAT_HANDLE_TYPE_LMR,
                                                DAT_HANDLE_TYPE_RMR,
                                                DAT_HANDLE_TYPE_EVD,
                                                DAT_HANDLE_TYPE_CNO,
                                                DAT_HANDLE_TYPE_EP,
                                                DAT_HANDLE_TYPE_SRQ,
                                                DAT_HANDLE_TYPE_PSP,
                                                DAT_HANDLE_TYPE_RSP,
                                                ONLY_20(DAT_HANDLE_TYPE_CSP, ) DAT_HANDLE_TYPE_CR};
  const auto* w = static_cast<World*>(*state);
  const auto context_of = [](int kind) { return UINT64_C(0xfedcba9876543210) + static_cast<unsigned int>(kind); };
  for (int kind = 0; kind < kKinds; ++kind) {
    DAT_HANDLE_TYPE type;
    DAT_CONTEXT context;
    if (!w->good[kind]) continue;
    assert_ok(dat_get_handle_type(w->good[kind], &type));
    assert_int_equal(type, types[kind]);
    assert_error(dat_get_consumer_context(w->good[kind], &context), DAT_INVALID_STATE, DAT_NO_SUBTYPE);
    context.as_64 = context_of(kind);
    assert_ok(dat_set_consumer_context(w->good[kind], context));
  }
  for (int kind = 0; kind < kKinds; ++kind) {
    DAT_CONTEXT context;
    if (!w->good[kind]) continue;
    assert_ok(dat_get_consumer_context(w->good[kind], &context));
    assert_int_equal(context.as_64, context_of(kind));
  }
}

#define WORLD_TEST(test) cmocka_unit_test_setup_teardown(test, arguments::set_up_world, arguments::tear_down_world)
#define TABLE_TEST(table)                                                                   \
  {                                                                                         \
#table, table__every_argument_wrong < arguments::add_##table>, arguments::set_up_world, \
        arguments::tear_down_world, nullptr                                                 \
  }

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      WORLD_TEST(tables__are_complete),
      TABLE_TEST(registry),
      TABLE_TEST(common),
      TABLE_TEST(memory),
      TABLE_TEST(windows),
      TABLE_TEST(endpoints),
      TABLE_TEST(connecting),
      TABLE_TEST(posts),
      TABLE_TEST(srqs),
      TABLE_TEST(service_points),
      TABLE_TEST(rejecting),
      TABLE_TEST(events),
      TABLE_TEST(closing),
      WORLD_TEST(handles__are_stale_after_the_close),
      WORLD_TEST(handles__know_their_type_and_context),
  };
  return RUN_TESTS(tests);
}
