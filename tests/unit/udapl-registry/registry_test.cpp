// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// The registry's list of providers, extensions and messages; and all of these from many threads at once.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "tests/unit/udapl-registry/checks.hpp"
#include "tests/unit/udapl-registry/pause.hpp"
#include "tests/unit/udapl-registry/registry_rig.hpp"

namespace {

using namespace std::chrono_literals;

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
  plug_in_rxe(dat);  // a port that appears later is found
  CHECK_EQUAL(dat.list_providers(4, &count, list), kSuccess);
  CHECK_EQUAL(count, 2);
  CHECK_EQUAL(std::string(infos[0].ia_name), "one");
  CHECK_EQUAL(std::string(infos[1].ia_name), "ofa-v2-lo");
  CHECK_EQUAL(infos[1].dapl_version_major, 2U);
  CHECK_EQUAL(infos[1].dapl_version_minor, 0U);
  CHECK_EQUAL(infos[1].is_thread_safe, DAT_FALSE);
}

std::string listed_by(const Dat& dat) {
  DAT_PROVIDER_INFO infos[8];
  DAT_PROVIDER_INFO* list[8];
  for (int i = 0; i < 8; i++) list[i] = &infos[i];
  DAT_COUNT count = 0;
  CHECK_EQUAL(dat.list_providers(8, &count, list), kSuccess);
  std::string names;
  for (DAT_COUNT i = 0; i < count; i++) names += std::string(infos[i].ia_name) + " ";
  return names;
}

std::string port_line(const char* name, const char* ia_params) {
  return std::string(name) + " u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 \"" + ia_params + "\" \"\"\n";
}

// Debian's dat.conf has 62 lines for devices that most machines lack.
void dat_registry_list_providers__lines_for_absent_ports_come_last() {
  FakeLog log{};
  Dat dat(port_line("gone", "mlx4_0 1") + line("one", log) + port_line("gone-too", "eth9 0"));
  CHECK_EQUAL(listed_by(dat), "one gone gone-too ");
  plug_in_rxe(dat);
  CHECK_EQUAL(listed_by(dat), "one ofa-v2-lo gone gone-too ");
}

void dat_registry_list_providers__lines_for_ports_that_are_here_keep_their_order() {
  Dat dat(port_line("gone", "mlx4_0 1") + port_line("b", "rxe0 1") + port_line("a", "lo 0"));
  plug_in_rxe(dat);
  CHECK_EQUAL(listed_by(dat), "b a gone ");
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

/// The registry in a folder of its own, as in a private prefix that the loader does not search, with another library
/// beside it.
std::string private_registry(const TemporaryFolder& prefix, const char* library, const std::string& name) {
  std::filesystem::copy_file(LIBDAT2, prefix.path() + "/libdat2.so.2");
  if (library) std::filesystem::copy_file(library, prefix.path() + "/" + name);
  return prefix.path() + "/libdat2.so.2";
}

void provider_library__is_found_beside_the_registry() {
  FakeLog log{};
  const TemporaryFolder prefix;
  Dat dat(line("one", log, "libprivate-provider.so"), RTLD_LOCAL,
          private_registry(prefix, FAKE_PROVIDER_A, "libprivate-provider.so"));
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("one", &ia), kSuccess);
  CHECK_EQUAL(log.opens, 1);
  CHECK_EQUAL(dat.close(ia), kSuccess);
}

void provider_library__with_a_path_is_not_looked_for() {
  FakeLog log{};
  const TemporaryFolder prefix;
  Dat dat(line("one", log, "./libprivate-provider.so"), RTLD_LOCAL,
          private_registry(prefix, FAKE_PROVIDER_A, "libprivate-provider.so"));
  CapturedStderr captured;
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("one", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  CHECK(captured.text().find("cannot load the provider") != std::string::npos);
}

// The library beside the registry, although the machine may have the original of that name.
void automatic_entry__broken_library_is_said_once() {
  const TemporaryFolder prefix;
  const std::string registry = private_registry(prefix, nullptr, "");
  const std::string provider = prefix.write("libdaplofa.so.2", "");
  Dat dat("", RTLD_LOCAL, registry);
  plug_in_rxe(dat);
  CapturedStderr captured;
  DAT_IA_HANDLE ia = nullptr;
  for (int round = 0; round < 2; round++)
    CHECK_EQUAL(dat.open("ofa-v2-rxe0-1", &ia), not_found(DAT_NAME_NOT_REGISTERED));
  const std::string text = captured.text();
  CHECK(text.starts_with("dat: automatic entry: cannot load the provider \"libdaplofa.so.2\" of \"ofa-v2-rxe0-1\": " +
                         provider));
  CHECK_EQUAL(text.find('\n'), text.size() - 1);
}

// A thread that is cancelled before it makes the call, and `came_back`, which is set if the call returned.
struct Cancelled {
  std::function<void()> call;
  bool came_back = false;
};

void cancel_here(void*) {
  pthread_testcancel();
}

bool comes_back_though_cancelled(std::function<void()> call) {
  Cancelled cancelled{std::move(call)};
  pthread_t thread{};
  void* end = nullptr;
  const auto run = [](void* argument) -> void* {
    auto& self = *static_cast<Cancelled*>(argument);
    pthread_cancel(pthread_self());
    self.call();
    self.came_back = true;
    pthread_testcancel();
    return nullptr;
  };
  CHECK_EQUAL(pthread_create(&thread, nullptr, run, &cancelled), 0);
  CHECK_EQUAL(pthread_join(thread, &end), 0);
  CHECK_EQUAL(end, PTHREAD_CANCELED);
  return cancelled.came_back;
}

void pthread_cancel__waits_for_the_registry() {
  FakeLog log{};
  log.in_init = {cancel_here, nullptr};
  log.in_related = {cancel_here, nullptr};
  Dat dat(line("one", log) + line("two", log));
  DAT_IA_HANDLE ia = nullptr;
  DAT_HA_RELATIONSHIP answer{};
  char one[] = "one";
  char two[] = "two";
  // Reading dat.conf and loading the provider contain many cancellation points.
  CHECK(comes_back_though_cancelled([&] { CHECK_EQUAL(dat.open("one", &ia), kSuccess); }));
  CHECK(comes_back_though_cancelled([&] { CHECK_EQUAL(dat.providers_related(one, two, &answer), kSuccess); }));
  CHECK(comes_back_though_cancelled([&] { CHECK_EQUAL(dat.close(ia), kSuccess); }));
  CHECK_EQUAL(log.closes, 1);
}

void pthread_cancel__goes_through_to_the_provider() {
  FakeLog log{};
  Dat dat(line("one", log));
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("one", &ia), kSuccess);
  log.in_slot = {cancel_here, nullptr};
  DAT_PZ_HANDLE pz = nullptr;
  CHECK(!comes_back_though_cancelled([&] { dat.pz_create(ia, &pz); }));
  log.in_slot = {};
  CHECK_EQUAL(dat.pz_create(ia, &pz), kSuccess);
  CHECK_EQUAL(dat.close(ia), kSuccess);
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

void dat_registry_providers_related__close_waits_for_the_answer() {
  FakeLog a{}, b{};
  Dat dat(line("a", a) + line("b", b));
  Pause pause;
  a.in_related = pause.hook();
  a.related = DAT_TRUE;
  DAT_IA_HANDLE ia = nullptr;
  CHECK_EQUAL(dat.open("a", &ia), kSuccess);
  DAT_RETURN asked = DAT_NOT_IMPLEMENTED, closed = DAT_NOT_IMPLEMENTED;
  DAT_HA_RELATIONSHIP answer = DAT_HA_UNKNOWN, later = DAT_HA_CONFLICTING;
  char name_a[] = "a", name_b[] = "b";
  std::thread asker([&] { asked = dat.providers_related(name_a, name_b, &answer); });
  pause.wait_until_reached();
  std::thread closer([&] { closed = dat.close(ia); });
  std::this_thread::sleep_for(100ms);
  CHECK_EQUAL(__atomic_load_n(&a.closes, __ATOMIC_RELAXED), 0);
  CHECK_EQUAL(dat.providers_related(name_a, name_b, &later), kSuccess);  // an IA that is being closed is not asked
  CHECK_EQUAL(later, DAT_HA_UNKNOWN);
  pause.end();
  asker.join();
  closer.join();
  CHECK_EQUAL(asked, kSuccess);
  CHECK_EQUAL(answer, DAT_HA_TRUE);
  CHECK_EQUAL(closed, kSuccess);
  CHECK_EQUAL(a.closes, 1);
  CHECK_EQUAL(a.finis, 1);
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
  // The names of this machine's own RDMA ports may follow.
  CHECK(captured.text().starts_with("dat: " + dat.conf_path + ":1: 2 of 8 fields: no thread safety; line ignored\n" +
                                    "dat: " + dat.conf_path + ":3: a quote is not closed; line ignored\n" +
                                    "dat: no provider for \"bad\"; the names here are \"one\""));
}

/// The messages for a bad line and an unknown name.
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
      TEST_IN_CHILD(dat_registry_list_providers__offered_lines_in_file_order),
      TEST_IN_CHILD(dat_registry_list_providers__lines_come_before_automatic_entries),
      TEST_IN_CHILD(dat_registry_list_providers__lines_for_absent_ports_come_last),
      TEST_IN_CHILD(dat_registry_list_providers__lines_for_ports_that_are_here_keep_their_order),
      TEST_IN_CHILD(automatic_entry__line_of_the_same_name_wins),
      TEST_IN_CHILD(automatic_entry__broken_library_is_said_once),
      TEST_IN_CHILD(provider_library__is_found_beside_the_registry),
      TEST_IN_CHILD(provider_library__with_a_path_is_not_looked_for),
      TEST_IN_CHILD(pthread_cancel__waits_for_the_registry),
      TEST_IN_CHILD(pthread_cancel__goes_through_to_the_provider),
      TEST_IN_CHILD(dat_registry_list_providers__fewer_than_there_are_is_success),
      TEST_IN_CHILD(dat_registry_add_provider__program_brings_its_own),
      TEST_IN_CHILD(dat_registry_remove_provider__in_use_is_refused),
      TEST_IN_CHILD(dat_registry_providers_related__asks_the_open_providers),
      TEST_IN_CHILD(dat_registry_providers_related__close_waits_for_the_answer),
      TEST_IN_CHILD(dat_extension_op__refused_until_an_ia_has_extensions),
      TEST_IN_CHILD(dat_extension_op__open_query_loads_and_close_query_unloads),
      TEST_IN_CHILD(malformed_lines__are_said_once_and_the_others_work),
      TEST_IN_CHILD(messages__errors),
      TEST_IN_CHILD(messages__no_type),
      TEST_IN_CHILD(messages__syslog_only),
      TEST_IN_CHILD(messages__consumer_calls),
      TEST_IN_CHILD(threads__open_list_and_close_at_once),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
