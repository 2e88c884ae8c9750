// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
// dat_extension_op(), the one function that finds its provider by handle, by name or by table, depending on the
// operation.
#include <atomic>
#include <cstdarg>
#include <cstring>

#include "udapl/registry/common/export.hpp"
#include "udapl/registry/guarded.hpp"
#include "udapl/registry/ia_table.hpp"
#include "udapl/registry/refused_handle.hpp"
#include "udapl/registry/registry.hpp"
#include "udapl/registry/status.hpp"
#include "udapl/registry/version.hpp"

namespace dapple::registry {
namespace {

constinit std::atomic<bool> extensions_allowed{false};

void allow_extensions() noexcept {
  extensions_allowed.store(true, std::memory_order_relaxed);
}

/// Operations with DAT_OPEN_EXTENSION_BASE: the first argument is the IA's name, which the provider gets as the handle.
/// The IA is not opened, so version and thread safety are the headers' defaults.
DAT_RETURN open_by_name(DAT_NAME_PTR name, DAT_EXTENDED_OP op, va_list args) {
  if (!name || ::strnlen(name, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH)
    return error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
  ProviderUse use;
  const bool thread_safe = DAT_THREADSAFE == DAT_TRUE;
  if (const DAT_RETURN status = registry().acquire(name, {DAT_VERSION_MAJOR, DAT_VERSION_MINOR}, thread_safe, use))
    return status;
  const DAT_RETURN status = use.provider->handle_extendedop_func(name, op, args);
  if (status == DAT_SUCCESS)
    allow_extensions();
  else
    registry().release(use);
  return status;
}

/// Operations with DAT_CLOSE_EXTENSION_BASE end what an opening operation began. Their handle is the one that it
/// returned.
DAT_RETURN close_by_table(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args) {
  const DAT_PROVIDER* const provider = DAT_HANDLE_TO_PROVIDER(handle);
  ProviderUse use;
  if (!registry().find_use(provider, use)) return error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
  const DAT_RETURN status = provider->handle_extendedop_func(handle, op, args);
  if (status == DAT_SUCCESS) registry().release(use);
  return status;
}

/// Everything but the operations that open.
DAT_RETURN extend(DAT_HANDLE given, DAT_EXTENDED_OP op, va_list args) {
  const DAT_HANDLE handle = IaTable::is_index(given) ? IaTable::lookup(given) : given;
  if (!handle || is_of_other_version(DAT_HANDLE_TO_PROVIDER(handle)))
    return refuse_handle("dat_extension_op", given, DAT_INVALID_HANDLE1);
  if (!extensions_allowed.load(std::memory_order_relaxed)) return error(DAT_NOT_IMPLEMENTED);
  if (op & DAT_CLOSE_EXTENSION_BASE) return close_by_table(handle, op, args);
  return DAT_HANDLE_EXTENDEDOP(handle, op, args);
}

}  // namespace

void learn_extensions(DAT_IA_HANDLE provider_ia) {
  DAT_IA_ATTR attributes{};
  if (DAT_IA_QUERY(provider_ia, nullptr, DAT_IA_ALL, &attributes, DAT_PROVIDER_FIELD_NONE, nullptr) != DAT_SUCCESS)
    return;
  if (attributes.extension_supported != DAT_EXTENSION_NONE) allow_extensions();
}

}  // namespace dapple::registry

DAPPLE_EXPORT DAT_RETURN dat_extension_op(DAT_HANDLE dat_handle, DAT_EXTENDED_OP op, ...) {
  using namespace dapple::registry;
  va_list args;
  va_start(args, op);
  DAT_RETURN status;
  if (op & DAT_OPEN_EXTENSION_BASE) {
    const DAT_NAME_PTR name = va_arg(args, DAT_NAME_PTR);
    status = guarded([&] { return open_by_name(name, op, args); });
  } else {
    status = guarded([&] { return extend(dat_handle, op, args); });
  }
  va_end(args);
  return status;
}
