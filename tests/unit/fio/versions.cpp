// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The engines' tables for a fio of each version. This program exports the symbols that an engine needs from fio.
#include <dlfcn.h>
#include <sys/types.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <initializer_list>

#include <setjmp.h>

extern "C" {
#include <cmocka.h>
}

#include "fio/layout.hpp"

namespace {
char said[1024];
}

extern "C" {
#define EXPORTED __attribute__((visibility("default")))
EXPORTED char fio_version_string[32];
EXPORTED __attribute__((format(printf, 1, 2))) ssize_t log_err(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(said, sizeof said, format, arguments);
  va_end(arguments);
  return length;
}
EXPORTED void fio_mark_td_terminate(void*) {}
EXPORTED void fio_gettime(struct timespec*, void*) {}
EXPORTED void io_u_queued(void*, void*) {}
}

namespace {

const char* const kEngines[] = {"apm_client", "apm_server", "gpspm_client", "gpspm_server"};

struct Loaded {
  void* library;
  char* ops;
};

// Loads an engine as fio does.
Loaded load(const char* engine, const char* version) {
  char path[512];
  Loaded loaded = {};
  said[0] = 0;
  std::snprintf(fio_version_string, sizeof fio_version_string, "%s", version);
  std::snprintf(path, sizeof path, "%s/librpma_%s.so", ENGINES, engine);
  loaded.library = dlopen(path, RTLD_LAZY);
  if (!loaded.library) fail_msg("%s", dlerror());
  const auto get = reinterpret_cast<void (*)(char**)>(dlsym(loaded.library, "get_ioengine"));
  assert_non_null(get);
  get(&loaded.ops);
  return loaded;
}

template <typename T>
T at(const char* structure, std::uint32_t offset) {
  T value;
  std::memcpy(&value, structure + offset, sizeof value);
  return value;
}

void engine__unknown_version_is_refused_in_one_line(void**) {
  for (const char* engine : kEngines) {
    const Loaded loaded = load(engine, "fio-3.36");
    char wanted[256];
    std::snprintf(wanted, sizeof wanted,
                  "librpma_%s: fio-3.36 is not known; this engine is for fio-3.33, fio-3.39 and fio-3.41\n", engine);
    assert_string_equal(said, wanted);
    assert_null(loaded.ops);
    dlclose(loaded.library);
  }
}

// A version that only starts like a known one is unknown.
void engine__development_version_is_refused(void**) {
  const Loaded loaded = load("apm_client", "fio-3.33-12-gabcd");
  assert_null(loaded.ops);
  dlclose(loaded.library);
}

void engine__known_version_finds_name_interface_and_options(void**) {
  for (const char* version : {"fio-3.33", "fio-3.39", "fio-3.41"}) {
    const dapple::fio::Layout* const layout = dapple::fio::layout_of(version);
    assert_non_null(layout);
    for (const char* engine : kEngines) {
      const Loaded loaded = load(engine, version);
      assert_string_equal(said, "");
      assert_non_null(loaded.ops);
      char name[64];
      std::snprintf(name, sizeof name, "librpma_%s", engine);
      assert_string_equal(at<const char*>(loaded.ops, layout->ops_name), name);
      assert_int_equal(at<int>(loaded.ops, layout->ops_version), layout->ops_interface);
      const char* option = at<const char*>(loaded.ops, layout->ops_options);
      const bool server = std::strstr(engine, "server") != nullptr;
      for (const char* wanted : {"serverip", "port", "direct_write_to_pmem", "busy_wait_polling"}) {
        assert_string_equal(at<const char*>(option, layout->option_name), wanted);
        // fio keeps its own pointer before them.
        assert_true(at<std::uint32_t>(option, layout->option_offset) >= sizeof(void*));
        option += layout->option_size;
        if (!server && std::strcmp(wanted, "port") == 0) break;
      }
      assert_null(at<const char*>(option, layout->option_name));
      dlclose(loaded.library);
    }
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(engine__unknown_version_is_refused_in_one_line),
      cmocka_unit_test(engine__development_version_is_refused),
      cmocka_unit_test(engine__known_version_finds_name_interface_and_options),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
