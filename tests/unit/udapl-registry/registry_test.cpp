// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// The registry as a program meets it: a process for each test, which loads libdat2.so with a dat.conf of its own.
#include <dat2/dat_registry.h>
#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tests/unit/udapl-registry/fake_provider.hpp"
#include "tests/unit/udapl-registry/scratch.hpp"

namespace {

constexpr DAT_RETURN kSuccess = DAT_SUCCESS;
constexpr DAT_RETURN not_found(DAT_RETURN_SUBTYPE subtype) {
  return DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | subtype;
}
constexpr DAT_RETURN bad_argument(DAT_RETURN_SUBTYPE subtype) {
  return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | subtype;
}

/// A line that loads a fake provider, which will write to `log`.
std::string line(const std::string& name, const FakeLog& log, const char* library = FAKE_PROVIDER_A,
                 const char* version_and_threads = "u2.0 nonthreadsafe", const char* section = "default") {
  char params[32];
  std::snprintf(params, sizeof params, "%p", static_cast<const void*>(&log));
  return name + " " + version_and_threads + " " + section + " " + library + " fake.1.0 \"" + params + "\" \"\"\n";
}

/// libdat2.so with a dat.conf. Once in a process: the file is not read again.
class Dat {
 public:
  explicit Dat(const std::string& conf, int scope = RTLD_LOCAL) : conf_path(folder.write("dat.conf", conf)) {
    ::setenv("DAT_OVERRIDE", conf_path.c_str(), 1);
    // The RDMA devices of this machine are not seen; a test may make some in the folder.
    ::setenv("SYSFS_PATH", folder.path().c_str(), 1);
    library_ = ::dlopen(LIBDAT2, RTLD_NOW | scope);
    if (!library_) {
      std::puts(::dlerror());
      std::abort();
    }
    find(ia_openv, "dat_ia_openv");
    find(ia_close, "dat_ia_close");
    find(pz_create, "dat_pz_create");
    find(extension_op, "dat_extension_op");
    find(list_providers, "dat_registry_list_providers");
    find(add_provider, "dat_registry_add_provider");
    find(remove_provider, "dat_registry_remove_provider");
    find(providers_related, "dat_registry_providers_related");
  }
  ~Dat() { ::dlclose(library_); }

  DAT_RETURN open(const char* name, DAT_IA_HANDLE* ia, DAT_UINT32 major = 2, DAT_UINT32 minor = 0,
                  DAT_BOOLEAN thread_safe = DAT_FALSE) {
    DAT_EVD_HANDLE evd = nullptr;
    return ia_openv(const_cast<DAT_NAME_PTR>(name), 8, &evd, ia, major, minor, thread_safe);
  }
  DAT_RETURN close(DAT_IA_HANDLE ia) { return ia_close(ia, DAT_CLOSE_DEFAULT); }

  TemporaryFolder folder;
  std::string conf_path;
  decltype(&dat_ia_openv) ia_openv;
  decltype(&dat_ia_close) ia_close;
  decltype(&dat_pz_create) pz_create;
  decltype(&dat_extension_op) extension_op;
  decltype(&dat_registry_list_providers) list_providers;
  decltype(&dat_registry_add_provider) add_provider;
  decltype(&dat_registry_remove_provider) remove_provider;
  decltype(&dat_registry_providers_related) providers_related;

 private:
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (!function) std::abort();
  }
  void* library_;
};

bool loaded(const char* library) {
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (handle) ::dlclose(handle);
  return handle != nullptr;
}

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
  CHECK_EQUAL(dat.open("one", &one_more), DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES);
  CHECK_EQUAL(log.closes, 1);
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

void dat_registry_list_providers__offered_lines_in_file_order() {
  FakeLog log{};
  Dat dat(line("b", log) + line("hidden", log, FAKE_PROVIDER_A, "u2.0 nonthreadsafe", "nondefault") +
          "kernel k2.0 nonthreadsafe default x.ko x.1.0 \"\" \"\"\n" +
          "old u1.2 nonthreadsafe default libdaplcma.so.1 dapl.1.2 \"ib0 0\" \"\"\n" +
          line("a", log, FAKE_PROVIDER_A, "u2.0 threadsafe") + line("b", log, FAKE_PROVIDER_B) +
          line("a", log, FAKE_PROVIDER_A, "u2.1 threadsafe"));
  DAT_PROVIDER_INFO infos[4];
  DAT_PROVIDER_INFO* list[] = {&infos[0], &infos[1], &infos[2], &infos[3]};
  DAT_COUNT count = -1;
  CHECK_EQUAL(dat.list_providers(4, &count, list), kSuccess);
  CHECK_EQUAL(count, 3);
  CHECK_EQUAL(std::string(infos[0].ia_name), "b");
  CHECK_EQUAL(infos[0].dapl_version_major, 2U);
  CHECK_EQUAL(infos[0].is_thread_safe, DAT_FALSE);
  CHECK_EQUAL(std::string(infos[1].ia_name), "a");
  CHECK_EQUAL(infos[1].dapl_version_minor, 0U);
  CHECK_EQUAL(infos[1].is_thread_safe, DAT_TRUE);
  CHECK_EQUAL(infos[2].dapl_version_minor, 1U);
  CHECK_EQUAL(log.inits, 0);

  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("hidden", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK_EQUAL(dat.open("kernel", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK_EQUAL(dat.open("old", &ia), not_found(DAT_NAME_NOT_REGISTERED));
}

/// Makes the folder of `dat` show an RDMA device on the network device lo, which every machine has.
void plug_in_rxe(const Dat& dat) {
  const std::string port = dat.folder.path() + "/class/infiniband/rxe0/ports/1";
  std::filesystem::create_directories(port + "/gid_attrs/ndevs");
  dat.folder.write("class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "lo\n");
  dat.folder.write("class/infiniband/rxe0/ports/1/state", "4: ACTIVE\n");
}

void dat_registry_list_providers__lines_come_before_automatic_entries() {
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_PROVIDER_INFO infos[4];
  DAT_PROVIDER_INFO* list[] = {&infos[0], &infos[1], &infos[2], &infos[3]};
  DAT_COUNT count = -1;
  CHECK_EQUAL(dat.list_providers(4, &count, list), kSuccess);
  CHECK_EQUAL(count, 1);
  plug_in_rxe(dat);  // a port that comes later is seen
  CHECK_EQUAL(dat.list_providers(4, &count, list), kSuccess);
  CHECK_EQUAL(count, 2);
  CHECK_EQUAL(std::string(infos[0].ia_name), "one");
  CHECK_EQUAL(std::string(infos[1].ia_name), "ofa-v2-lo");
  CHECK_EQUAL(infos[1].dapl_version_major, 2U);
  CHECK_EQUAL(infos[1].dapl_version_minor, 0U);
  CHECK_EQUAL(infos[1].is_thread_safe, DAT_FALSE);
}

void automatic_entry__line_of_the_same_name_wins() {
  FakeLog log{};
  Dat dat(line("ofa-v2-lo", log));
  plug_in_rxe(dat);
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("ofa-v2-lo", &ia), kSuccess);
  CHECK_EQUAL(log.inits, 1);
  CHECK_EQUAL(dat.close(ia), kSuccess);
}

void automatic_entry__missing_library_is_said_once() {
  Dat dat("");
  plug_in_rxe(dat);
  CapturedStderr captured;
  DAT_IA_HANDLE ia = nullptr;
  for (int round = 0; round < 2; round++)
    CHECK_EQUAL(dat.open("ofa-v2-rxe0-1", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  const std::string text = captured.text();
  CHECK(text.starts_with("dat: automatic entry: cannot load the provider \"libdaplofa.so.2\" of \"ofa-v2-rxe0-1\": "));
  CHECK_EQUAL(text.find('\n'), text.size() - 1);
}

void dat_registry_list_providers__fewer_than_there_are_is_success() {
  FakeLog log{};
  Dat dat(line("a", log) + line("b", log));
  DAT_PROVIDER_INFO info;
  DAT_PROVIDER_INFO* list[] = {&info, nullptr};
  DAT_COUNT count = -1;
  CHECK_EQUAL(dat.list_providers(1, &count, list), kSuccess);
  CHECK_EQUAL(count, 1);
  CHECK_EQUAL(std::string(info.ia_name), "a");
  CHECK_EQUAL(dat.list_providers(0, &count, nullptr), bad_argument(DAT_INVALID_ARG1));
  CHECK_EQUAL(count, 2);
  CHECK_EQUAL(dat.list_providers(1, nullptr, list), bad_argument(DAT_INVALID_ARG2));
  CHECK_EQUAL(dat.list_providers(1, &count, nullptr), bad_argument(DAT_INVALID_ARG3));
  CHECK_EQUAL(dat.list_providers(2, &count, list), bad_argument(DAT_INVALID_ARG3));
}

void dat_registry_add_provider__program_brings_its_own() {
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_PROVIDER table{};
  DAT_PROVIDER_INFO info = {"mine", 2, 0, DAT_FALSE};
  CHECK_EQUAL(dat.add_provider(nullptr, &info), bad_argument(DAT_INVALID_ARG1));
  CHECK_EQUAL(dat.add_provider(&table, nullptr), bad_argument(DAT_INVALID_ARG2));
  CHECK_EQUAL(dat.add_provider(&table, &info), kSuccess);
  CHECK_EQUAL(dat.add_provider(&table, &info), DAT_CLASS_ERROR | DAT_PROVIDER_ALREADY_REGISTERED);

  DAT_PROVIDER_INFO infos[2];
  DAT_PROVIDER_INFO* list[] = {&infos[0], &infos[1]};
  DAT_COUNT count = 0;
  CHECK_EQUAL(dat.list_providers(2, &count, list), kSuccess);
  CHECK_EQUAL(count, 2);
  CHECK_EQUAL(std::string(infos[1].ia_name), "mine");

  CHECK_EQUAL(dat.remove_provider(nullptr, &info), bad_argument(DAT_INVALID_ARG1));
  CHECK_EQUAL(dat.remove_provider(&table, nullptr), bad_argument(DAT_INVALID_ARG2));
  CHECK_EQUAL(dat.remove_provider(&table, &info), kSuccess);
  CHECK_EQUAL(dat.remove_provider(&table, &info), not_found(DAT_NAME_NOT_REGISTERED));
  DAT_PROVIDER_INFO endless;
  std::memset(&endless, 'n', sizeof endless);
  CHECK_EQUAL(dat.add_provider(&table, &endless), bad_argument(DAT_INVALID_ARG2));
}

void dat_registry_remove_provider__in_use_is_refused() {
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("one", &ia), kSuccess);
  const DAT_PROVIDER_INFO info = log.info;
  CHECK_EQUAL(dat.remove_provider(log.provider, &info), DAT_CLASS_ERROR | DAT_PROVIDER_IN_USE);
  CHECK_EQUAL(dat.close(ia), kSuccess);
}

void dat_registry_providers_related__asks_the_open_providers() {
  FakeLog a{}, b{};
  Dat dat(line("a", a) + line("b", b, FAKE_PROVIDER_B));
  char name_a[] = "a", name_b[] = "b", nobody[] = "nobody";
  DAT_HA_RELATIONSHIP answer = DAT_HA_EXTENSION_BASE;
  CHECK_EQUAL(dat.providers_related(nullptr, name_b, &answer), bad_argument(DAT_INVALID_ARG1));
  CHECK_EQUAL(dat.providers_related(name_a, nullptr, &answer), bad_argument(DAT_INVALID_ARG2));
  CHECK_EQUAL(dat.providers_related(name_a, name_b, nullptr), bad_argument(DAT_INVALID_ARG3));
  CHECK_EQUAL(dat.providers_related(name_a, nobody, &answer), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK_EQUAL(dat.providers_related(name_a, name_a, &answer), kSuccess);
  CHECK_EQUAL(answer, DAT_HA_TRUE);
  CHECK_EQUAL(dat.providers_related(name_a, name_b, &answer), kSuccess);
  CHECK_EQUAL(answer, DAT_HA_UNKNOWN);

  DAT_IA_HANDLE ia_a = nullptr, ia_b = nullptr;
  CHECK_EQUAL(dat.open("a", &ia_a), kSuccess);
  CHECK_EQUAL(dat.providers_related(name_a, name_b, &answer), kSuccess);
  CHECK_EQUAL(answer, DAT_HA_FALSE);
  a.related = DAT_TRUE;
  CHECK_EQUAL(dat.providers_related(name_b, name_a, &answer), kSuccess);
  CHECK_EQUAL(answer, DAT_HA_TRUE);
  CHECK_EQUAL(dat.open("b", &ia_b), kSuccess);
  CHECK_EQUAL(dat.providers_related(name_a, name_b, &answer), kSuccess);
  CHECK_EQUAL(answer, DAT_HA_CONFLICTING);
  CHECK_EQUAL(dat.close(ia_a), kSuccess);
  CHECK_EQUAL(dat.close(ia_b), kSuccess);
}

void dat_extension_op__refused_until_an_ia_has_extensions() {
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_IA_HANDLE without = nullptr, with = nullptr;
  CHECK_EQUAL(dat.open("one", &without), kSuccess);
  CHECK_EQUAL(dat.extension_op(without, 7, 0ULL), DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED);
  log.extension = DAT_EXTENSION_IB;
  CHECK_EQUAL(dat.open("one", &with), kSuccess);
  CHECK_EQUAL(dat.extension_op(with, 7, 0ULL), kSuccess);
  CHECK_EQUAL(dat.close(without), kSuccess);
  CHECK_EQUAL(dat.close(with), kSuccess);
}

void dat_extension_op__open_query_loads_and_close_query_unloads() {
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_HANDLE query = nullptr;
  CHECK_EQUAL(dat.extension_op(nullptr, DAT_OPEN_EXTENSION_BASE, "one", &query), kSuccess);
  CHECK_EQUAL(log.inits, 1);
  CHECK_EQUAL(dat.extension_op(query, DAT_CLOSE_EXTENSION_BASE), kSuccess);
  CHECK_EQUAL(log.finis, 1);
  CHECK(!loaded(FAKE_PROVIDER_A));
}

void malformed_lines__are_said_once_and_the_others_work() {
  FakeLog log{};
  Dat dat("bad u2.0\n" + line("one", log) + "worse \"\n");
  CapturedStderr captured;
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("one", &ia), kSuccess);
  CHECK_EQUAL(dat.close(ia), kSuccess);
  CHECK_EQUAL(dat.open("bad", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK_EQUAL(captured.text(), "dat: " + dat.conf_path + ":1: 2 of 8 fields: no thread safety; line ignored\n" +
                                   "dat: " + dat.conf_path + ":3: a quote is not closed; line ignored\n");
}

/// What is printed for a bad line and an unknown name.
std::string printed(const char* type, const char* destination) {
  ::setenv("DAT_DBG_TYPE", type, 1);
  ::setenv("DAT_DBG_DEST", destination, 1);
  CapturedStderr captured;
  Dat dat("bad\n");
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("nobody", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  return captured.text();
}
void messages__errors() {
  CHECK(printed("1", "1").find("no API version") != std::string::npos);
}
void messages__no_type() {
  CHECK_EQUAL(printed("0", "1"), "");
}
void messages__syslog_only() {
  CHECK_EQUAL(printed("1", "2"), "");
}
void messages__consumer_calls() {
  CHECK(printed("0x21", "1").find("no provider for \"nobody\"") != std::string::npos);
}

/// The provider does not link the registry, as the original's do not; so it needs the registry's symbols in sight.
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

void threads__open_list_and_close_at_once() {
  FakeLog a{}, b{};
  Dat dat(line("a", a) + line("b", b, FAKE_PROVIDER_B));
  std::atomic<int> failures{0};
  const auto work = [&](const char* name) {
    for (int round = 0; round < 50; ++round) {
      DAT_IA_HANDLE ia = nullptr;
      DAT_COUNT count = 0;
      DAT_PZ_HANDLE pz = nullptr;
      if (dat.open(name, &ia) != DAT_SUCCESS) ++failures;
      dat.list_providers(0, &count, nullptr);
      if (count != 2) ++failures;
      if (dat.extension_op(ia, 7, 0ULL) != (DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED)) ++failures;
      if (dat.close(ia) != DAT_SUCCESS) ++failures;
      if (dat.pz_create(ia, &pz) == DAT_SUCCESS && round < 50) ++failures;
    }
  };
  std::vector<std::thread> threads;
  for (const char* name : {"a", "b", "a", "b"}) threads.emplace_back(work, name);
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(failures.load(), 0);
  CHECK_EQUAL(a.opens, 100);
  CHECK_EQUAL(a.closes, 100);
  CHECK_EQUAL(a.inits, a.finis);
  CHECK_EQUAL(b.inits, b.finis);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      TEST_IN_CHILD(dat_ia_openv__loads_opens_dispatches_closes_unloads),
      TEST_IN_CHILD(dat_ia_openv__chain_is_served_by_the_first_library_that_loads),
      TEST_IN_CHILD(dat_ia_openv__missing_library_is_one_clear_line),
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
      TEST_IN_CHILD(dat_registry_list_providers__offered_lines_in_file_order),
      TEST_IN_CHILD(dat_registry_list_providers__lines_come_before_automatic_entries),
      TEST_IN_CHILD(automatic_entry__line_of_the_same_name_wins),
      TEST_IN_CHILD(automatic_entry__missing_library_is_said_once),
      TEST_IN_CHILD(dat_registry_list_providers__fewer_than_there_are_is_success),
      TEST_IN_CHILD(dat_registry_add_provider__program_brings_its_own),
      TEST_IN_CHILD(dat_registry_remove_provider__in_use_is_refused),
      TEST_IN_CHILD(dat_registry_providers_related__asks_the_open_providers),
      TEST_IN_CHILD(dat_extension_op__refused_until_an_ia_has_extensions),
      TEST_IN_CHILD(dat_extension_op__open_query_loads_and_close_query_unloads),
      TEST_IN_CHILD(malformed_lines__are_said_once_and_the_others_work),
      TEST_IN_CHILD(messages__errors),
      TEST_IN_CHILD(messages__no_type),
      TEST_IN_CHILD(messages__syslog_only),
      TEST_IN_CHILD(messages__consumer_calls),
      TEST_IN_CHILD(scope__local),
      TEST_IN_CHILD(scope__global),
      TEST_IN_CHILD(threads__open_list_and_close_at_once),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
