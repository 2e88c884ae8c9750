// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

// The registry in the surroundings of a program: a process for each test, which loads libdat2.so with a dat.conf of its
// own.
#include <dat2/dat_registry.h>
#include <dlfcn.h>

#include <string>

#include "tests/unit/udapl-registry/fake_provider.hpp"
#include "tests/unit/udapl-registry/scratch.hpp"

constexpr DAT_RETURN kSuccess = DAT_SUCCESS;
constexpr DAT_RETURN not_found(DAT_RETURN_SUBTYPE subtype) {
  return DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | subtype;
}
constexpr DAT_RETURN bad_argument(DAT_RETURN_SUBTYPE subtype) {
  return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | subtype;
}

/// A line that loads a fake provider, which will write to `log`.
std::string line(const std::string& name, const FakeLog& log, const char* library = FAKE_PROVIDER_A,
                 const char* version_and_threads = "u2.0 nonthreadsafe", const char* section = "default");

/// libdat2.so with a dat.conf. Only once in a process: the file is not read again.
class Dat {
 public:
  explicit Dat(const std::string& conf, int scope = RTLD_LOCAL, const std::string& registry = LIBDAT2);
  ~Dat();

  DAT_RETURN open(const char* name, DAT_IA_HANDLE* ia, DAT_UINT32 major = 2, DAT_UINT32 minor = 0,
                  DAT_BOOLEAN thread_safe = DAT_FALSE);
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
  void find(Function& function, const char* name);
  void* library_;
};

/// True if the process has loaded this library.
bool loaded(const char* library);
