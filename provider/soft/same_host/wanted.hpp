// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#ifndef DAPPLE_PROVIDER_SOFT_SAME_HOST_WANTED_HPP
#define DAPPLE_PROVIDER_SOFT_SAME_HOST_WANTED_HPP

#include <stdlib.h>
#include <string.h>

namespace dapple::soft {

// False if DAPPLE_SAME_HOST is "off": packets of one host take UDP, too.
inline bool same_host_wanted() {
  const char* wish = secure_getenv("DAPPLE_SAME_HOST");
  return wish == nullptr || strcmp(wish, "off") != 0;
}

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_SAME_HOST_WANTED_HPP
