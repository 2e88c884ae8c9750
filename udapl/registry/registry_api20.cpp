// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// The exported functions about IAs and providers that only 2.0 has.
#include <cstring>
#include <vector>

#include "udapl/registry/common/dat.hpp"
#include "udapl/registry/common/export.hpp"
#include "udapl/registry/guarded.hpp"
#include "udapl/registry/ia_table.hpp"
#include "udapl/registry/registry.hpp"
#include "udapl/registry/status.hpp"

namespace dapple::registry {
namespace {

/// Asks the open IA `name`, if there is one, about `other`. It is an error if the provider lacks the resources to
/// answer, and none if it does not support the question.
DAT_RETURN ask(const char* name, const DAT_NAME_PTR other, DAT_HA_RELATIONSHIP& said) {
  said = DAT_HA_UNKNOWN;
  const PinnedIa pinned(name);
  const DAT_IA_HANDLE ia = pinned.provider_ia();
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
  std::vector<DAT_PROVIDER_INFO> infos;
  if (const DAT_RETURN status = registry().list(infos)) return status;
  for (const DAT_PROVIDER_INFO& info : infos) {
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
}  // namespace dapple::registry

using namespace dapple::registry;

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
