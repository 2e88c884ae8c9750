// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/registry/registry.hpp"
#include "udapl/registry/version.hpp"

namespace dapple::registry {

bool is_registered(const DAT_PROVIDER* provider) {
  return registry().has(provider);
}

}  // namespace dapple::registry
