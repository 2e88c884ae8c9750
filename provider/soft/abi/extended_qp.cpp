// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/abi/extended_qp.hpp"

#include <dlfcn.h>

namespace dapple::soft::abi {

// No symbol distinguishes these releases. ibv_qp_to_qp_ex() reads only comp_mask, so it shows the place of comp_mask.
bool has_wr_flush(void* library) {
  const auto convert = reinterpret_cast<ibv_qp_ex* (*)(ibv_qp*)>(dlsym(library, "ibv_qp_to_qp_ex"));
  if (convert == nullptr) return false;
  Qp probe = {};
  probe.tail()[1] = kQpEx;
  return convert(&probe.qp) != nullptr;
}

void publish_qp_ex(Qp& qp, WrFlush flush, bool has_wr_flush) {
  if (has_wr_flush) {
    qp.tail()[0] = reinterpret_cast<uintptr_t>(flush);
    qp.tail()[1] = kQpEx;
  } else {
    qp.tail()[0] = kQpEx;
  }
}

}  // namespace dapple::soft::abi
