// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// The exported functions about IAs and providers: short wrappers over the registry and the table of open IAs.
#include <dat2/dat_registry.h>

#include <cstring>
#include <new>
#include <string>

#include "udapl/registry/export.hpp"
#include "udapl/registry/guarded.hpp"
#include "udapl/registry/ia_table.hpp"
#include "udapl/registry/log.hpp"
#include "udapl/registry/registry.hpp"
#include "udapl/registry/status.hpp"

namespace dapple::dat {
namespace {

bool is_name(const char* name) {
  return name && ::strnlen(name, DAT_NAME_MAX_LENGTH) < DAT_NAME_MAX_LENGTH;
}

/// dat_extension_op() is refused until an IA is known that has extensions: the tables of providers without them are one
/// slot shorter.
void learn_extensions(DAT_IA_HANDLE provider_ia) {
  DAT_IA_ATTR attributes{};
  if (DAT_IA_QUERY(provider_ia, nullptr, DAT_IA_ALL, &attributes, DAT_PROVIDER_FIELD_NONE, nullptr) != DAT_SUCCESS)
    return;
  if (attributes.extension_supported != DAT_EXTENSION_NONE) allow_extensions();
}

DAT_RETURN open_ia(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia_handle,
                   Version version, bool thread_safe) {
  if (!is_name(name)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
  if (!ia_handle) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  ProviderUse use;
  if (const DAT_RETURN status = registry().acquire(name, version, thread_safe, use)) {
    if (log_wants(LogType::kConsumerApi)) log(LogType::kConsumerApi, "no provider for " + quoted(name));
    return status;
  }
  DAT_IA_HANDLE provider_ia = nullptr;
  DAT_RETURN status = use.provider->ia_open_func(name, qlen, async_evd, &provider_ia);
  if (status == DAT_SUCCESS) {
    learn_extensions(provider_ia);
    // The provider is told the number only if there is one: until then nobody else can know the IA.
    const DAT_RETURN stored = guarded([&] {
      *ia_handle = ia_table().insert(provider_ia, use);
      return *ia_handle ? DAT_RETURN{DAT_SUCCESS} : error(DAT_INSUFFICIENT_RESOURCES);
    });
    if (stored == DAT_SUCCESS) return DAT_SUCCESS;
    use.provider->ia_close_func(provider_ia, DAT_CLOSE_ABRUPT_FLAG);
    status = stored;
  }
  registry().release(use);
  return status;
}

DAT_RETURN close_ia(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags) {
  const auto use = ia_table().begin_close(ia_handle);
  if (!use) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  const DAT_IA_HANDLE provider_ia = IaTable::lookup(ia_handle);
  const DAT_RETURN status = DAT_HANDLE_TO_PROVIDER(provider_ia)->ia_close_func(provider_ia, flags);
  if (status != DAT_SUCCESS) {
    ia_table().cancel_close(ia_handle);
    return status;
  }
  ia_table().finish_close(ia_handle);
  registry().release(*use);
  return DAT_SUCCESS;
}

DAT_RETURN list_providers(DAT_COUNT max_to_return, DAT_COUNT* entries_returned, DAT_PROVIDER_INFO* list[]) {
  if (!entries_returned) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (max_to_return > 0 && !list) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  const auto infos = registry().list();
  const auto there = static_cast<DAT_COUNT>(infos.size());
  if (max_to_return <= 0) {
    *entries_returned = there;
    return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
  }
  // DEVIATION uDAPL 2.0 6.2.2: that not all fit is no error. MPIs pass a fixed number and expect success.
  const DAT_COUNT count = max_to_return < there ? max_to_return : there;
  *entries_returned = 0;
  for (DAT_COUNT i = 0; i < count; ++i) {
    if (!list[i]) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    *list[i] = infos[static_cast<std::size_t>(i)];
    *entries_returned = i + 1;
  }
  return DAT_SUCCESS;
}

/// What the open IA `name`, if there is one, says about `other`. A provider that lacks the resources to tell is an
/// error; one that cannot tell at all is none.
DAT_RETURN ask(const char* name, const DAT_NAME_PTR other, DAT_HA_RELATIONSHIP& said) {
  said = DAT_HA_UNKNOWN;
  const DAT_IA_HANDLE ia = ia_table().find_by_name(name);
  if (!ia) return DAT_SUCCESS;
  DAT_BOOLEAN answer = DAT_FALSE;
  const DAT_RETURN status = DAT_IA_HA_RELATED(ia, other, &answer);
  if (DAT_GET_TYPE(status) == DAT_INSUFFICIENT_RESOURCES) return status;
  if (status == DAT_SUCCESS) said = answer != DAT_FALSE ? DAT_HA_TRUE : DAT_HA_FALSE;
  return DAT_SUCCESS;
}

DAT_RETURN relate(const DAT_NAME_PTR name, const DAT_NAME_PTR other, DAT_HA_RELATIONSHIP* answer) {
  if (!is_name(name)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
  if (!is_name(other)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  if (!answer) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  bool knows_name = false;
  bool knows_other = false;
  for (const DAT_PROVIDER_INFO& info : registry().list()) {
    knows_name = knows_name || std::strcmp(info.ia_name, name) == 0;
    knows_other = knows_other || std::strcmp(info.ia_name, other) == 0;
  }
  if (!knows_name || !knows_other) return error(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
  if (std::strcmp(name, other) == 0) {
    *answer = DAT_HA_TRUE;
    return DAT_SUCCESS;
  }
  DAT_HA_RELATIONSHIP one;
  DAT_HA_RELATIONSHIP two;
  if (const DAT_RETURN status = ask(name, other, one)) return status;
  if (const DAT_RETURN status = ask(other, name, two)) return status;
  const bool both_know = one != DAT_HA_UNKNOWN && two != DAT_HA_UNKNOWN;
  *answer = both_know && one != two ? DAT_HA_CONFLICTING : one != DAT_HA_UNKNOWN ? one : two;
  return DAT_SUCCESS;
}

}  // namespace
}  // namespace dapple::dat

using namespace dapple::dat;

DAPPLE_EXPORT DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_evd_qlen, DAT_EVD_HANDLE* async_evd,
                                      DAT_IA_HANDLE* ia_handle, DAT_UINT32 dat_major, DAT_UINT32 dat_minor,
                                      DAT_BOOLEAN thread_safe) {
  return guarded([&] {
    return open_ia(name, async_evd_qlen, async_evd, ia_handle, {dat_major, dat_minor}, thread_safe != DAT_FALSE);
  });
}

DAPPLE_EXPORT DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags) {
  return guarded([&] { return close_ia(ia_handle, flags); });
}

DAPPLE_EXPORT DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT* entries_returned,
                                                     DAT_PROVIDER_INFO* provider_list[]) {
  return guarded([&] { return list_providers(max_to_return, entries_returned, provider_list); });
}

DAPPLE_EXPORT DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info) {
  if (!provider) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
  if (!info || !is_name(info->ia_name)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return guarded([&] { return registry().add(*provider, *info); });
}

DAPPLE_EXPORT DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info) {
  if (!provider) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
  if (!info || !is_name(info->ia_name)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return guarded([&] { return registry().remove(*info); });
}

DAPPLE_EXPORT DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR name, const DAT_NAME_PTR other,
                                                        DAT_HA_RELATIONSHIP* answer) {
  return guarded([&] { return relate(name, other, answer); });
}

DAPPLE_EXPORT DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* other) {
  if (!handle) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  if (!other) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return guarded([&] {
    const DAT_IA_HANDLE found = IaTable::is_index(handle) ? IaTable::lookup(handle) : ia_table().reverse(handle);
    if (!found) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
    *other = found;
    return DAT_RETURN{DAT_SUCCESS};
  });
}
