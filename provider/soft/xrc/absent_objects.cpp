// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/xrc/absent_objects.hpp"

#include "provider/common/immortal.hpp"

namespace dapple::soft {

Cq& absent_cq() {
  static Immortal<Cq> cq;
  return *cq;
}

Pd& absent_pd() {
  static Immortal<Pd> pd;
  return *pd;
}

}  // namespace dapple::soft
