// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

#include <cerrno>

#include "ibverbs-glue/verbs.hpp"

namespace dapple::rpma {

// Destroys now. An object that others still use stays, without its handle: the handle's end would try again, and the
// program would get each report twice. Returns 0 or an errno value.
template <class Handle>
[[nodiscard]] int destroy_once(Handle& handle) noexcept {
  const int error = verbs::destroy(handle);
  if (error == EBUSY) (void)handle.release();
  return error;
}

}  // namespace dapple::rpma
