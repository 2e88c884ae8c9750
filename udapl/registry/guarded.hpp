// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <new>

#include "ibverbs-glue/no_cancel.hpp"
#include "udapl/registry/status.hpp"

namespace dapple::dat {

/// Runs the body of an exported function, which may throw bad_alloc and nothing else, and keeps it from the C caller. A
/// thread is not cancelled meanwhile, though files are read and libraries loaded: that, too, would have to pass through
/// here.
template <class Body>
DAT_RETURN guarded(Body&& body) noexcept {
  const NoCancel whole;
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
  }
}

}  // namespace dapple::dat
