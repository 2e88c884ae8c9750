// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/abi/extended_qp.hpp"

#include <dlfcn.h>

namespace dapple::soft::abi {
namespace {

// No symbol distinguishes these releases. ibv_qp_to_qp_ex() reads only comp_mask, so it shows the place of comp_mask.
bool find_wr_flush() {
  void* library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const auto convert = reinterpret_cast<ibv_qp_ex* (*)(ibv_qp*)>(dlsym(library, "ibv_qp_to_qp_ex"));
  bool found = false;
  if (convert != nullptr) {
    Qp probe = {};
    probe.tail()[1] = kQpEx;
    found = convert(&probe.qp) != nullptr;
  }
  dlclose(library);
  return found;
}

}  // namespace

bool has_wr_flush() {
  static const bool found = find_wr_flush();
  return found;
}

void publish_qp_ex(Qp& qp, WrFlush flush) {
  if (has_wr_flush()) {
    qp.tail()[0] = reinterpret_cast<uintptr_t>(flush);
    qp.tail()[1] = kQpEx;
  } else {
    qp.tail()[0] = kQpEx;
  }
}

}  // namespace dapple::soft::abi
