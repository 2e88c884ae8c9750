// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cstring>
#include <new>

#include "ibverbs-glue/no_cancel.hpp"
#include "udapl/registry/common/dat.hpp"
#include "udapl/registry/status.hpp"

namespace dapple::registry {

/// Tells whether an argument may be the name of an IA or a provider.
inline bool is_name(const char* name) {
  return name && ::strnlen(name, DAT_NAME_MAX_LENGTH) < DAT_NAME_MAX_LENGTH;
}

/// Runs the body of an exported function and keeps its exceptions from the C caller; it may throw only bad_alloc. It
/// also disables cancellation, which would unwind through this function while files are read or libraries are loaded.
template <class Body>
DAT_RETURN guarded(Body&& body) noexcept {
  const NoCancel whole;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
  }
}

}  // namespace dapple::registry
