// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/abi/extended_qp.hpp"

#include <dlfcn.h>

#include "tests/unit/provider/cmocka.hpp"

namespace {

using namespace dapple::soft::abi;

// The libibverbs that this program is linked to, of any release.
bool flushes() {
  return has_wr_flush(dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD));
}

void publish_qp_ex__is_seen_by_libibverbs(void**) {
  Qp plain = {};
  Qp extended = {};
  publish_qp_ex(extended, nullptr, flushes());
  assert_null(ibv_qp_to_qp_ex(&plain.qp));
  assert_ptr_equal(ibv_qp_to_qp_ex(&extended.qp), &extended.qp_ex);
}

#ifdef DAPPLE_HAS_WR_FLUSH
void publish_qp_ex__flush_is_where_the_header_has_it(void**) {
  const auto flush = [](ibv_qp_ex*, uint32_t, uint64_t, size_t, uint8_t, uint8_t) {};
  Qp extended = {};
  publish_qp_ex(extended, flush, flushes());
  assert_true(extended.qp_ex.wr_flush == static_cast<WrFlush>(flush));
}
#endif

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(publish_qp_ex__is_seen_by_libibverbs),
#ifdef DAPPLE_HAS_WR_FLUSH
      cmocka_unit_test(publish_qp_ex__flush_is_where_the_header_has_it),
#endif
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
