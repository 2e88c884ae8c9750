// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The plug-in in processes with a libibverbs of each private interface, of an unknown one, or without any.
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include <string>

#include "provider/protocol/identity.hpp"
#include "provider/soft/abi/structures.hpp"
#include "tests/unit/provider/cmocka.hpp"
#include "tests/unit/provider/heard_child.hpp"

namespace {

using namespace dapple::provider;
using namespace dapple::soft;

constexpr const char* kKnown[] = {"34", "57", "59", "62", "64", "65"};

void* load(const char* fake) {
  return dlopen((std::string(DAPPLE_FAKES) + "/libfake-registrar-" + fake + ".so").c_str(), RTLD_NOW | RTLD_GLOBAL);
}

bool load_plugin() {
  return dlopen(DAPPLE_PLUGIN, RTLD_NOW) != nullptr;
}

const abi::DeviceOperations* registered(void* library) {
  auto* place = static_cast<const abi::DeviceOperations**>(dlsym(library, "ibv_registered"));
  return place == nullptr ? nullptr : *place;
}

// Ends the child with a code of its own if a condition does not hold.
void expect(bool holds, int code) {
  if (!holds) _exit(code);
}

void plugin__registers_at_each_known_interface(void**) {
  for (const char* fake : kKnown) {
    const int status = status_of_child(30, [&] {
      void* library = load(fake);
      expect(library != nullptr && load_plugin(), 1);
      const abi::DeviceOperations* driver = registered(library);
      expect(driver != nullptr && strcmp(driver->name, "dapple") == 0, 2);
      expect(driver->match_table[0].kind == abi::kMatchDriverId && driver->match_table[0].driver_id == kDriverId, 3);
      expect(driver->match_table[1].kind == abi::kMatchEnd, 4);
      abi::SysfsDevice found = {};
      abi::Device* device = driver->alloc_device(&found);
      expect(device != nullptr && device->core_support == 1, 5);
      driver->uninit_device(device);
    });
    if (said[0] != 0) print_message("%s", said);
    assert_int_equal(status, 0);
    assert_string_equal(said, "");
  }
}

void plugin__unknown_interface_is_refused_with_a_line(void**) {
  const int status = status_of_child(30, [] {
    void* library = load("unknown");
    expect(library != nullptr && load_plugin(), 1);
    expect(registered(library) == nullptr, 2);
  });
  assert_int_equal(status, 0);
  assert_non_null(strstr(said, " has no software device: its libibverbs has an unknown private interface"));
  assert_non_null(strstr(said, "; get a newer dapple, or let the program load a libibverbs of a known release\n"));
  assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

// Rdma-core 33 has another private interface, and 35 lacks public functions.
void plugin__old_libibverbs_is_refused_with_a_line(void**) {
  for (const char* fake : {"33", "35"}) {
    const int status = status_of_child(30, [&] {
      void* library = load(fake);
      expect(library != nullptr && load_plugin(), 1);
      expect(registered(library) == nullptr, 2);
    });
    assert_int_equal(status, 0);
    assert_non_null(
        strstr(said, " has no software device: its libibverbs is too old (needs rdma-core 36 or later): /"));
    assert_non_null(strstr(said, "; update that rdma-core, or let the program load a later libibverbs\n"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
  }
}

void plugin__without_libibverbs(void**) {
  const int status = status_of_child(30, [] { expect(load_plugin(), 1); });
  assert_int_equal(status, 0);
  assert_non_null(strstr(said, " has no software device: no libibverbs.so.1 is loaded in this process"));
}

// A vendor's release may have another structure with the same name.
void open__context_of_another_size_is_refused(void**) {
  const int status = status_of_child(30, [] {
    void* library = load("fork");
    expect(library != nullptr && load_plugin() && registered(library) != nullptr, 1);
    abi::SysfsDevice found = {};
    abi::Device device = {};
    device.ops = registered(library);
    device.sysfs = &found;
    strcpy(device.device.name, "dapple7");
    errno = 0;
    expect(registered(library)->alloc_context(&device.device, -1, nullptr) == nullptr, 2);
    expect(errno == EPROTONOSUPPORT, 3);
    expect(*static_cast<int*>(dlsym(library, "ibv_uninited")) == 1, 4);
    // Space for the largest known context, and for one that is larger than ours.
    expect(*static_cast<size_t*>(dlsym(library, "ibv_allocated")) > 720, 5);
  });
  assert_int_equal(status, 0);
  assert_non_null(
      strstr(said, "dapple: cannot open dapple7: the contexts of this libibverbs are not those of rdma-core"));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(plugin__registers_at_each_known_interface),
      cmocka_unit_test(plugin__unknown_interface_is_refused_with_a_line),
      cmocka_unit_test(plugin__old_libibverbs_is_refused_with_a_line),
      cmocka_unit_test(plugin__without_libibverbs),
      cmocka_unit_test(open__context_of_another_size_is_refused),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
