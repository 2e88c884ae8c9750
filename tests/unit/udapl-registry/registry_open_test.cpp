// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// Opening and closing IAs through the registry: the line that serves, and the libraries that are loaded and unloaded.
#include <dlfcn.h>
#include <malloc.h>

#include <cstdint>
#include <set>
#include <vector>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tests/unit/udapl-registry/registry_rig.hpp"

namespace {

void dat_ia_openv__loads_opens_dispatches_closes_unloads() {
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_IA_HANDLE ia = nullptr;
  CHECK(!loaded(FAKE_PROVIDER_A));
  CHECK_EQUAL(dat.open("one", &ia), kSuccess);
  CHECK(loaded(FAKE_PROVIDER_A));
  CHECK(reinterpret_cast<std::uintptr_t>(ia) > 0 && reinterpret_cast<std::uintptr_t>(ia) < 4096);
  CHECK_EQUAL(log.inits, 1);
  CHECK_EQUAL(std::string(log.info.ia_name), "one");
  CHECK_EQUAL(log.info.dapl_version_major, 2U);
  CHECK_EQUAL(log.info.dapl_version_minor, 0U);
  CHECK_EQUAL(log.info.is_thread_safe, DAT_FALSE);
  CHECK_EQUAL(std::string(log.opened_name), "one");

  log.slot_result = DAT_CLASS_ERROR | DAT_LENGTH_ERROR;
  DAT_PZ_HANDLE pz = nullptr;
  CHECK_EQUAL(dat.pz_create(ia, &pz), DAT_CLASS_ERROR | DAT_LENGTH_ERROR);
  CHECK_EQUAL(log.slot, slot_offset<&DAT_PROVIDER::pz_create_func>());

  CHECK_EQUAL(dat.close(ia), kSuccess);
  CHECK_EQUAL(log.closes, 1);
  CHECK_EQUAL(log.finis, 1);
  CHECK(!loaded(FAKE_PROVIDER_A));
}

void dat_ia_openv__chain_is_served_by_the_first_library_that_loads() {
  FakeLog missing{}, b{}, a{};
  Dat dat(line("one", missing, "libno-such-provider.so.9") + line("other", a) + line("one", b, FAKE_PROVIDER_B) +
          line("one", a));
  DAT_IA_HANDLE ia = nullptr, again = nullptr;
  CapturedStderr captured;
  CHECK_EQUAL(dat.open("one", &ia), kSuccess);
  CHECK_EQUAL(b.variant, 'b');
  CHECK_EQUAL(a.inits, 0);
  CHECK_EQUAL(dat.open("one", &again), kSuccess);
  CHECK_EQUAL(b.inits, 1);
  CHECK_EQUAL(b.opens, 2);
  CHECK_EQUAL(dat.close(ia), kSuccess);
  CHECK_EQUAL(b.finis, 0);
  CHECK_EQUAL(dat.close(again), kSuccess);
  CHECK_EQUAL(b.finis, 1);
  CHECK_EQUAL(captured.text(), "");
}

void dat_ia_openv__missing_library_is_one_clear_line() {
  FakeLog log{};
  Dat dat("# comment\n" + line("one", log, "libno-such-provider.so.9"));
  DAT_IA_HANDLE ia = nullptr;
  CapturedStderr captured;
  CHECK_EQUAL(dat.open("one", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK_EQUAL(dat.open("one", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK(ia == nullptr);
  CHECK_EQUAL(captured.text(), "dat: " + dat.conf_path +
                                   ":2: cannot load the provider \"libno-such-provider.so.9\" of \"one\": "
                                   "libno-such-provider.so.9: cannot open shared object file: No such file or "
                                   "directory\n");
}

// The registry of this machine: it may have RDMA ports of its own, whose names follow.
void dat_ia_openv__unknown_name_is_told_once_with_those_that_exist() {
  FakeLog log{};
  Dat dat(line("one", log) + line("one", log, FAKE_PROVIDER_A, "u2.0 threadsafe") + line("two", log) +
          line("hidden", log, FAKE_PROVIDER_A, "u2.0 nonthreadsafe", "nondefault"));
  DAT_IA_HANDLE ia = nullptr;
  CapturedStderr captured;
  CHECK_EQUAL(dat.open("one", &ia, 3, 0), not_found(DAT_MAJOR_NOT_FOUND));
  CHECK_EQUAL(captured.text(), "");
  CHECK_EQUAL(dat.open("nobody\n", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  const std::string told = captured.text();
  CHECK(told.starts_with("dat: no provider for \"nobody\\x0a\"; the names here are \"one\", \"two\""));
  CHECK_EQUAL(told.find('\n'), told.size() - 1);
  CHECK_EQUAL(dat.open("hidden", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK_EQUAL(captured.text(), told);
  CHECK(ia == nullptr);
}

void dat_ia_openv__names_beyond_the_eighth_are_counted() {
  FakeLog log{};
  std::string lines;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}) lines += line(name, log);
  Dat dat(lines);
  DAT_IA_HANDLE ia = nullptr;
  CapturedStderr captured;
  CHECK_EQUAL(dat.open("nobody", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK(captured.text().find(", \"h\" and ") != std::string::npos);
}

void dat_ia_openv__unknown_name_without_any_other() {
  Dat dat("");
  DAT_IA_HANDLE ia = nullptr;
  CapturedStderr captured;
  CHECK_EQUAL(dat.open("nobody", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  // This machine may have RDMA ports.
  CHECK(captured.text().starts_with("dat: no provider for \"nobody\"; no name exists here, ") ||
        captured.text().starts_with("dat: no provider for \"nobody\"; the names here are \"ofa-v2-"));
}

void dat_ia_openv__unknown_name_is_silent_on_request() {
  setenv("DAT_DBG_TYPE", "0", 1);
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_IA_HANDLE ia = nullptr;
  CapturedStderr captured;
  CHECK_EQUAL(dat.open("nobody", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK_EQUAL(captured.text(), "");
}

void dat_ia_openv__library_that_is_no_provider() {
  FakeLog log{};
  Dat dat(line("one", log, "libm.so.6"));
  DAT_IA_HANDLE ia = nullptr;
  CapturedStderr captured;
  CHECK_EQUAL(dat.open("one", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK(captured.text().find("undefined symbol: dat_provider_init") != std::string::npos);
}

void dat_ia_openv__provider_that_registers_nothing() {
  FakeLog log{};
  log.forget_to_add = true;
  Dat dat(line("one", log));
  DAT_IA_HANDLE ia = nullptr;
  CapturedStderr captured;
  CHECK_EQUAL(dat.open("one", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK(captured.text().find("registers no provider for \"one\"") != std::string::npos);
  CHECK_EQUAL(log.finis, 1);
  CHECK(!loaded(FAKE_PROVIDER_A));
}

void dat_ia_openv__provider_that_stays_registered_is_forgotten() {
  FakeLog log{};
  log.forget_to_remove = true;
  Dat dat(line("one", log));
  DAT_IA_HANDLE ia = nullptr;
  for (int round = 1; round <= 2; ++round) {
    CHECK_EQUAL(dat.open("one", &ia), kSuccess);
    CHECK_EQUAL(dat.close(ia), kSuccess);
    CHECK_EQUAL(log.inits, round);
  }
}

void dat_ia_openv__subtype_says_what_was_not_found() {
  FakeLog log{};
  Dat dat(line("one", log, FAKE_PROVIDER_A, "u2.1 nonthreadsafe") +
          line("safe", log, FAKE_PROVIDER_A, "u2.0 threadsafe"));
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("nobody", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK_EQUAL(dat.open("on", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK_EQUAL(dat.open("one", &ia, 3, 0), not_found(DAT_MAJOR_NOT_FOUND));
  CHECK_EQUAL(dat.open("one", &ia, 1, 2), not_found(DAT_MAJOR_NOT_FOUND));
  CHECK_EQUAL(dat.open("one", &ia, 2, 2), not_found(DAT_MINOR_NOT_FOUND));
  CHECK_EQUAL(dat.open("one", &ia, 2, 1, DAT_TRUE), not_found(DAT_THREAD_SAFETY_NOT_FOUND));
  CHECK_EQUAL(dat.open("safe", &ia), not_found(DAT_THREAD_SAFETY_NOT_FOUND));
  CHECK_EQUAL(log.inits, 0);
}

void dat_ia_openv__exact_version_else_the_smallest_greater_minor() {
  FakeLog v1{}, v3{}, v5{};
  Dat dat(line("one", v5, FAKE_PROVIDER_A, "u2.5 nonthreadsafe") +
          line("one", v1, FAKE_PROVIDER_B, "u2.1 nonthreadsafe") +
          line("one", v3, FAKE_PROVIDER_A, "u2.3 nonthreadsafe"));
  const struct {
    DAT_UINT32 minor;
    const FakeLog& served;
  } requests[] = {{0, v1}, {1, v1}, {2, v3}, {3, v3}, {4, v5}, {5, v5}};
  for (const auto& request : requests) {
    v1 = v3 = v5 = FakeLog{};
    DAT_IA_HANDLE ia = nullptr;
    CHECK_EQUAL(dat.open("one", &ia, 2, request.minor), kSuccess);
    CHECK_EQUAL(request.served.opens, 1);
    CHECK_EQUAL(v1.opens + v3.opens + v5.opens, 1);
    CHECK_EQUAL(dat.close(ia), kSuccess);
  }
}

void dat_ia_openv__thread_safety_picks_the_line() {
  FakeLog safe{}, unsafe{};
  Dat dat(line("one", unsafe) + line("one", safe, FAKE_PROVIDER_B, "u2.0 threadsafe"));
  DAT_IA_HANDLE one = nullptr, two = nullptr;
  CHECK_EQUAL(dat.open("one", &one, 2, 0, DAT_TRUE), kSuccess);
  CHECK_EQUAL(safe.opens, 1);
  CHECK_EQUAL(safe.info.is_thread_safe, DAT_TRUE);
  CHECK_EQUAL(dat.open("one", &two, 2, 0, DAT_FALSE), kSuccess);
  CHECK_EQUAL(unsafe.opens, 1);
  CHECK_EQUAL(dat.close(one), kSuccess);
  CHECK_EQUAL(safe.finis, 1);
  CHECK_EQUAL(unsafe.finis, 0);
  CHECK_EQUAL(dat.close(two), kSuccess);
}

void dat_ia_openv__arguments_are_checked() {
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open(nullptr, &ia), bad_argument(DAT_INVALID_ARG1));
  CHECK_EQUAL(dat.open(std::string(256, 'n').c_str(), &ia), bad_argument(DAT_INVALID_ARG1));
  CHECK_EQUAL(dat.open(std::string(255, 'n').c_str(), &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK_EQUAL(dat.open("one", nullptr), DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
  CHECK_EQUAL(log.inits, 0);
}

void dat_ia_openv__failed_open_unloads() {
  FakeLog log{};
  log.open_result = DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_DEVICE;
  Dat dat(line("one", log));
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("one", &ia), log.open_result);
  CHECK(ia == nullptr);
  CHECK_EQUAL(log.finis, 1);
  CHECK(!loaded(FAKE_PROVIDER_A));
}

void dat_ia_openv__table_full_closes_again() {
  FakeLog log{};
  Dat dat(line("one", log));
  std::vector<DAT_IA_HANDLE> ias(4095);
  std::set<DAT_IA_HANDLE> distinct;
  for (DAT_IA_HANDLE& ia : ias) {
    CHECK_EQUAL(dat.open("one", &ia), kSuccess);
    distinct.insert(ia);
  }
  CHECK_EQUAL(distinct.size(), ias.size());
  DAT_IA_HANDLE one_more = nullptr;
  DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
  CHECK_EQUAL(dat.ia_openv(const_cast<DAT_NAME_PTR>("one"), 8, &async_evd, &one_more, 2, 0, DAT_FALSE),
              DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES);
  CHECK_EQUAL(log.closes, 1);
  CHECK(async_evd == DAT_HANDLE_NULL);
  CHECK_EQUAL(dat.close(ias[1000]), kSuccess);
  CHECK_EQUAL(dat.open("one", &ias[1000]), kSuccess);
  for (const DAT_IA_HANDLE ia : ias) CHECK_EQUAL(dat.close(ia), kSuccess);
  CHECK_EQUAL(log.finis, 1);
}

void dat_ia_close__failure_leaves_the_handle_open() {
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_IA_HANDLE ia = nullptr;
  DAT_PZ_HANDLE pz = nullptr;
  CHECK_EQUAL(dat.open("one", &ia), kSuccess);
  log.close_result = DAT_CLASS_ERROR | DAT_INVALID_STATE | DAT_INVALID_STATE_IA_IN_USE;
  CHECK_EQUAL(dat.close(ia), log.close_result);
  CHECK_EQUAL(dat.pz_create(ia, &pz), kSuccess);
  log.close_result = DAT_SUCCESS;
  CHECK_EQUAL(dat.close(ia), kSuccess);
  CHECK_EQUAL(dat.close(ia), DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_IA);
  CHECK_EQUAL(log.closes, 2);
}

void dat_ia_close__hundred_rounds_leave_nothing() {
  FakeLog log{};
  Dat dat(line("one", log));
  std::size_t in_use = 0;
  for (int round = 0; round < 100; ++round) {
    DAT_IA_HANDLE ia = nullptr;
    CHECK_EQUAL(dat.open("one", &ia), kSuccess);
    CHECK_EQUAL(dat.close(ia), kSuccess);
    // The loader and the tables reach their size in the first rounds.
    if (round == 10) in_use = ::mallinfo2().uordblks;
  }
  CHECK_EQUAL(::mallinfo2().uordblks, in_use);
  CHECK_EQUAL(log.inits, 100);
  CHECK_EQUAL(log.finis, 100);
}

void dat_ia_close__stale_number_is_not_handed_out_at_once() {
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_IA_HANDLE first = nullptr, second = nullptr;
  CHECK_EQUAL(dat.open("one", &first), kSuccess);
  CHECK_EQUAL(dat.close(first), kSuccess);
  CHECK_EQUAL(dat.open("one", &second), kSuccess);
  CHECK(first != second);
  CHECK_EQUAL(dat.close(second), kSuccess);
}

/// Like the original's, the provider does not link the registry, so the registry's symbols must be visible.
void scope__provider_of_old_finds_the_registry(int scope) {
  FakeLog log{};
  Dat dat(line("one", log, FAKE_PROVIDER_UNLINKED), scope);
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("one", &ia), kSuccess);
  void* provider = ::dlopen(FAKE_PROVIDER_UNLINKED, RTLD_NOW | RTLD_NOLOAD);
  CHECK(provider != nullptr);
  if (!provider) return;
  const auto own_handle =
      reinterpret_cast<DAT_RETURN (*)(DAT_IA_HANDLE, DAT_IA_HANDLE*)>(::dlsym(provider, "fake_provider_own_handle"));
  DAT_IA_HANDLE own = nullptr, back = nullptr;
  CHECK_EQUAL(own_handle(ia, &own), kSuccess);
  CHECK_EQUAL(own_handle(own, &back), kSuccess);
  CHECK_EQUAL(back, ia);
  ::dlclose(provider);
  CHECK_EQUAL(dat.close(ia), kSuccess);
}
void scope__local() {
  scope__provider_of_old_finds_the_registry(RTLD_LOCAL);
}
void scope__global() {
  scope__provider_of_old_finds_the_registry(RTLD_GLOBAL);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(dat_ia_openv__loads_opens_dispatches_closes_unloads),
      TEST_IN_CHILD(dat_ia_openv__chain_is_served_by_the_first_library_that_loads),
      TEST_IN_CHILD(dat_ia_openv__missing_library_is_one_clear_line),
      TEST_IN_CHILD(dat_ia_openv__unknown_name_is_told_once_with_those_that_exist),
      TEST_IN_CHILD(dat_ia_openv__names_beyond_the_eighth_are_counted),
      TEST_IN_CHILD(dat_ia_openv__unknown_name_without_any_other),
      TEST_IN_CHILD(dat_ia_openv__unknown_name_is_silent_on_request),
      TEST_IN_CHILD(dat_ia_openv__library_that_is_no_provider),
      TEST_IN_CHILD(dat_ia_openv__provider_that_registers_nothing),
      TEST_IN_CHILD(dat_ia_openv__provider_that_stays_registered_is_forgotten),
      TEST_IN_CHILD(dat_ia_openv__subtype_says_what_was_not_found),
      TEST_IN_CHILD(dat_ia_openv__exact_version_else_the_smallest_greater_minor),
      TEST_IN_CHILD(dat_ia_openv__thread_safety_picks_the_line),
      TEST_IN_CHILD(dat_ia_openv__arguments_are_checked),
      TEST_IN_CHILD(dat_ia_openv__failed_open_unloads),
      TEST_IN_CHILD(dat_ia_openv__table_full_closes_again),
      TEST_IN_CHILD(dat_ia_close__failure_leaves_the_handle_open),
      TEST_IN_CHILD(dat_ia_close__hundred_rounds_leave_nothing),
      TEST_IN_CHILD(dat_ia_close__stale_number_is_not_handed_out_at_once),
      TEST_IN_CHILD(scope__local),
      TEST_IN_CHILD(scope__global),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
