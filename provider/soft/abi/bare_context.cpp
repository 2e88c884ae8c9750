// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// A device that can be opened and offers no operation.
#include "provider/soft/plugin.hpp"

namespace dapple::soft {

class Context {};

Context* make_context(const ContextInit&) {
  static constinit Context bare;
  return &bare;
}

void free_context(Context*) {}

const Operations& operations() {
  static constexpr Operations none;
  return none;
}

}  // namespace dapple::soft
