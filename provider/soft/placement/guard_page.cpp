// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/placement/guard_page.hpp"

#include <sys/random.h>

namespace dapple::soft {

bool GuardPage::map() {
  uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce || !page_.map()) return false;
  guard_ = {page_.address(), nonce};
  *reinterpret_cast<uint64_t*>(guard_.address) = nonce;  // NOLINT(performance-no-int-to-ptr)
  return true;
}

}  // namespace dapple::soft
