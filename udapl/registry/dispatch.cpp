// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// The functions that only dispatch: they check the handle and jump to the provider's function.
#include "udapl/registry/common/export.hpp"
#include "udapl/registry/ia_table.hpp"
#include "udapl/registry/refused_handle.hpp"
#include "udapl/registry/version.hpp"

namespace dapple::registry {
namespace {

/// Calls a slot of the handle's table. kSubtype is the subtype for a bad handle. It also tells whether the handle is an
/// IA's, which in 2.0 is a number and not a pointer. Refuses NULL, other values that no object can have, and objects of
/// the other version. The function is not noexcept, which would turn the jump into a call; providers are C and throw
/// nothing.
template <DAT_RETURN_SUBTYPE kSubtype, auto kSlot, class... Args>
inline DAT_RETURN dispatch(const char* function, DAT_HANDLE given, Args... args) {
  constexpr bool kIsIa = kSubtype == DAT_INVALID_HANDLE_IA;
  constexpr bool kIsAny = kSubtype == DAT_INVALID_HANDLE1;
  DAT_HANDLE handle = given;
  if (kIsIa || (kIsAny && IaTable::is_index(handle))) handle = IaTable::lookup(handle);
  if (IaTable::is_index(handle)) [[unlikely]]
    return refuse_handle(function, given, kSubtype);
  const DAT_PROVIDER* const provider = DAT_HANDLE_TO_PROVIDER(handle);
  if (is_of_other_version(provider)) [[unlikely]]
    return refuse_handle(function, given, kSubtype);
  return (provider->*kSlot)(handle, args...);
}

}  // namespace
}  // namespace dapple::registry

#define SLOT(SUBTYPE, NAME)
#define FUNCTION(SUBTYPE, NAME, PARAMETERS, ...)                                                       \
  DAPPLE_EXPORT DAT_RETURN dat_##NAME PARAMETERS {                                                     \
    return dapple::registry::dispatch<SUBTYPE, &DAT_PROVIDER::NAME##_func>("dat_" #NAME, __VA_ARGS__); \
  }                                                                                                    \
  DAPPLE_EXPORT_VERSIONS(dat_##NAME)
#include "udapl/api/functions.def"
