// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/hang/notes/cm_notes.hpp"

#include <dlfcn.h>

namespace dapple::soft::hang {

const provider::CmEventNotes* cm_notes() {
  static const auto* const notes =
      static_cast<const provider::CmEventNotes*>(dlsym(RTLD_DEFAULT, provider::kCmEventNotes));
  return notes;
}

}  // namespace dapple::soft::hang
