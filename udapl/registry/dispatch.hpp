// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions that only dispatch: they check the handle and jump to the provider's function.
#pragma once

#include "udapl/registry/export.hpp"
#include "udapl/registry/ia_table.hpp"
#include "udapl/registry/status.hpp"
#include "udapl/registry/version.hpp"

namespace dapple::dat {

/// Calls a slot of an object's table. Refuses NULL, other values that no object can have, and objects of the other
/// version. The function is not noexcept, which would turn the jump into a call; providers are C and throw nothing.
template <auto kSlot, class... Args>
inline DAT_RETURN call(DAT_RETURN_SUBTYPE refusal, DAT_HANDLE object, Args... args) {
  if (IaTable::is_index(object)) [[unlikely]]
    return error(DAT_INVALID_HANDLE, refusal);
  const DAT_PROVIDER* const provider = DAT_HANDLE_TO_PROVIDER(object);
  if (is_of_other_version(provider)) [[unlikely]]
    return error(DAT_INVALID_HANDLE, refusal);
  return (provider->*kSlot)(object, args...);
}

/// The same for an IA, which the program knows by a number.
template <auto kSlot, class... Args>
inline DAT_RETURN call_ia(DAT_IA_HANDLE handle, Args... args) {
  return call<kSlot>(DAT_INVALID_HANDLE_IA, IaTable::lookup(handle), args...);
}

/// The same for a handle of any kind.
template <auto kSlot, class... Args>
inline DAT_RETURN call_any(DAT_HANDLE handle, Args... args) {
  if (IaTable::is_index(handle)) handle = IaTable::lookup(handle);
  return call<kSlot>(DAT_INVALID_HANDLE1, handle, args...);
}

}  // namespace dapple::dat

// NAME is the name of the function without dat_, and of the slot. PARAMS are its parameters, followed by their names,
// the handle first. KIND is the subtype of DAT_INVALID_HANDLE.
#define OBJECT(KIND, NAME, PARAMS, ...)                         \
  DAPPLE_EXPORT DAT_RETURN dat_##NAME PARAMS {                  \
    using namespace dapple::dat;                                \
    constexpr auto kSlot = &DAT_PROVIDER::NAME##_func;          \
    return call<kSlot>(DAT_INVALID_HANDLE_##KIND, __VA_ARGS__); \
  }                                                             \
  DAPPLE_EXPORT_VERSIONS(dat_##NAME)
#define IA(NAME, PARAMS, ...)                                \
  DAPPLE_EXPORT DAT_RETURN dat_##NAME PARAMS {               \
    using namespace dapple::dat;                             \
    return call_ia<&DAT_PROVIDER::NAME##_func>(__VA_ARGS__); \
  }                                                          \
  DAPPLE_EXPORT_VERSIONS(dat_##NAME)
#define ANY(NAME, PARAMS, ...)                                \
  DAPPLE_EXPORT DAT_RETURN dat_##NAME PARAMS {                \
    using namespace dapple::dat;                              \
    return call_any<&DAT_PROVIDER::NAME##_func>(__VA_ARGS__); \
  }                                                           \
  DAPPLE_EXPORT_VERSIONS(dat_##NAME)
