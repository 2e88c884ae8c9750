// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The provider's names: each is a library with its own SONAME and version node, and the further ones load the first.
#include <dlfcn.h>
#include <link.h>

#include "tests/unit/udapl-registry/checks.hpp"

namespace {

struct Name {
  const char* file;
  const char* node;
  const char* first;  // the SONAME of the library with the code
};
// The first names come last: by then only the further ones can have loaded them.
constexpr Name kNames[] = {
    {LIBDAPLOSCM, "DAPL_SCM_2.0", "libdaplofa.so.2"}, {LIBDAPLSCM, "DAPL_SCM_1.2", "libdaplcma.so.1"},
    {LIBDAPLOUCM, "DAPL_OCM_2.0", "libdaplofa.so.2"}, {LIBDAPLOFA, "DAPL_CMA_2.0", "libdaplofa.so.2"},
    {LIBDAPLCMA, "DAPL_CMA_1.2", "libdaplcma.so.1"},
};

// The function of that name in the node, if the library itself has it.
void* own(void* handle, const Name& name, const char* function) {
  Dl_info where{};
  const link_map* library = nullptr;
  void* found = dlvsym(handle, function, name.node);
  if (!found || found != dlsym(handle, function) || !dladdr(found, &where)) return nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) return nullptr;
  return library->l_addr == reinterpret_cast<ElfW(Addr)>(where.dli_fbase) ? found : nullptr;
}

void provider_names__each_has_its_node_and_leads_to_the_first(void**) {
  for (const Name& name : kNames) {
    void* handle = dlopen(name.file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) print_error("%s\n", dlerror());
    assert_non_null(handle);
    assert_non_null(dlopen(name.first, RTLD_NOW | RTLD_NOLOAD));
    void* init = own(handle, name, "dat_provider_init");
    void* fini = own(handle, name, "dat_provider_fini");
    assert_non_null(init);
    assert_non_null(fini);
    // Without an info the provider does nothing; a name that loaded itself would never return.
    reinterpret_cast<void (*)(const void*, const char*)>(init)(nullptr, nullptr);
    reinterpret_cast<void (*)(const void*)>(fini)(nullptr);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(provider_names__each_has_its_node_and_leads_to_the_first)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
