// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// The exported functions about IAs and providers: short wrappers over the registry and the table of open IAs.
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "udapl/registry/common/export.hpp"
#include "udapl/registry/common/log.hpp"
#include "udapl/registry/guarded.hpp"
#include "udapl/registry/ia_table.hpp"
#include "udapl/registry/refused_handle.hpp"
#include "udapl/registry/registry.hpp"
#include "udapl/registry/status.hpp"
#include "udapl/registry/version.hpp"

namespace dapple::registry {
namespace {

DAT_RETURN open_ia(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE* async_evd, DAT_IA_HANDLE* ia_handle,
                   Version version, bool thread_safe) {
  if (!is_name(name)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
  if (!ia_handle) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  ProviderUse use;
  const RequestedIa wanted = to_request(name);
  if (const DAT_RETURN status = registry().acquire(wanted.name, version, thread_safe, use)) {
    if (log_wants(LogType::kConsumerApi)) log(LogType::kConsumerApi, "no provider for " + quoted(wanted.name));
    return status;
  }
  const DAT_EVD_HANDLE given_evd = async_evd ? *async_evd : DAT_HANDLE_NULL;
  DAT_IA_HANDLE provider_ia = nullptr;
  DAT_RETURN status = call_open(*use.provider, wanted, qlen, async_evd, &provider_ia);
  if (status == DAT_SUCCESS) {
    learn_extensions(provider_ia);
    // Without memory or a free number the IA is closed again: until then no other thread can know it.
    const DAT_RETURN stored = guarded([&] {
      *ia_handle = ia_table().insert(provider_ia, use);
      return *ia_handle ? DAT_RETURN{DAT_SUCCESS} : error(DAT_INSUFFICIENT_RESOURCES);
    });
    if (stored == DAT_SUCCESS) return DAT_SUCCESS;
    use.provider->ia_close_func(provider_ia, DAT_CLOSE_ABRUPT_FLAG);
    if (async_evd) *async_evd = given_evd;  // one that the provider made is gone with its IA
    status = stored;
  }
  registry().release(use);
  return status;
}

DAT_RETURN close_ia(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags) {
  if (registry().is_given_up()) return error(DAT_INVALID_STATE);
  const auto use = ia_table().begin_close(ia_handle);
  if (!use) return refuse_handle("dat_ia_close", ia_handle, DAT_INVALID_HANDLE_IA);
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
  std::vector<DAT_PROVIDER_INFO> infos;
  if (const DAT_RETURN status = registry().list(infos)) return status;
  const auto there = static_cast<DAT_COUNT>(infos.size());
  if (max_to_return <= 0) {
    *entries_returned = there;
    return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
  }
  // DEVIATION uDAPL 2.0 6.2.2: a list that does not fit is not an error. MPIs pass a fixed number and expect success.
  const DAT_COUNT count = max_to_return < there ? max_to_return : there;
  *entries_returned = 0;
  for (DAT_COUNT i = 0; i < count; ++i) {
    if (!list[i]) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    *list[i] = infos[static_cast<std::size_t>(i)];
    *entries_returned = i + 1;
  }
  return DAT_SUCCESS;
}

}  // namespace
}  // namespace dapple::registry

using namespace dapple::registry;

DAPPLE_EXPORT DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT async_evd_qlen, DAT_EVD_HANDLE* async_evd,
                                      DAT_IA_HANDLE* ia_handle, DAT_UINT32 dat_major, DAT_UINT32 dat_minor,
                                      DAT_BOOLEAN thread_safe) {
  return guarded([&] {
    return open_ia(name, async_evd_qlen, async_evd, ia_handle, {dat_major, dat_minor}, thread_safe != DAT_FALSE);
  });
}
DAPPLE_EXPORT_VERSIONS(dat_ia_openv)

DAPPLE_EXPORT DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS flags) {
  return guarded([&] { return close_ia(ia_handle, flags); });
}
DAPPLE_EXPORT_VERSIONS(dat_ia_close)

DAPPLE_EXPORT DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT* entries_returned,
                                                     DAT_PROVIDER_INFO* provider_list[]) {
  return guarded([&] { return list_providers(max_to_return, entries_returned, provider_list); });
}
DAPPLE_EXPORT_VERSIONS(dat_registry_list_providers)

DAPPLE_EXPORT DAT_RETURN dat_registry_add_provider(ProviderArgument provider, const DAT_PROVIDER_INFO* info) {
  if (!provider) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
  if (!info || !is_name(info->ia_name)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return guarded([&] { return registry().add(*provider, *info); });
}
DAPPLE_EXPORT_VERSIONS(dat_registry_add_provider)

DAPPLE_EXPORT DAT_RETURN dat_registry_remove_provider(ProviderArgument provider, const DAT_PROVIDER_INFO* info) {
  if (!provider) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
  if (!info || !is_name(info->ia_name)) return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
  return guarded([&] { return registry().remove(*info); });
}
DAPPLE_EXPORT_VERSIONS(dat_registry_remove_provider)
