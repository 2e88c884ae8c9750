// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/system/doors.hpp"

#include <dlfcn.h>
#include <unistd.h>

namespace dapple::soft {

const Doors* doors() {
  // The library is there from the program's start or never.
  static const Doors* const found = [] {
    const auto* candidate = static_cast<const Doors*>(dlsym(RTLD_DEFAULT, kDoorsSymbol));
    return candidate != nullptr && candidate->version == kDoorsVersion ? candidate : nullptr;
  }();
  return found;
}

int hide_own(int fd) {
  return doors() == nullptr ? fd : doors()->hide(fd);
}

void close_own(int fd) {
  if (doors() == nullptr) {
    close(fd);
  } else {
    doors()->close_hidden(fd);
  }
}

}  // namespace dapple::soft
