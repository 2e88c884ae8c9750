// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Memory windows.
#include "tests/softroce/api/arguments/table.hpp"

namespace arguments {
namespace {

DAT_RMR_HANDLE made;
DAT_RMR_PARAM param;
DAT_RMR_CONTEXT context;
DAT_LMR_TRIPLET right, of_another, outside, past_the_end;

// iWARP has no window to call it on, whatever the other arguments are.
Function of_a_window(Function function) {
  if (!on_iwarp()) return function;
  function.result = handle_error(DAT_INVALID_HANDLE_RMR);
  for (Argument& argument : function.arguments) {
    for (auto& other : argument.others) other.status = function.result;
  }
  return function;
}

}  // namespace

void add_windows(Table& t) {
  const auto start = reinterpret_cast<DAT_VADDR>(t.w.f.memory);
  right = lmr_triplet(start, 4096, t.w.f.lmr_context);
  // In 1.2 the context alone identifies the region.
  of_another = lmr_triplet(start, 4096, ONLY_20(t.w.read_only_context) ONLY_12(0xdeadbeef));
  outside = lmr_triplet(start - 4096, 4096, t.w.f.lmr_context);
  past_the_end = lmr_triplet(start + MEMORY_SIZE - 1, 4096, t.w.f.lmr_context);

  const DAT_RETURN created = on_iwarp() ? status(DAT_MODEL_NOT_SUPPORTED) : DAT_RETURN{DAT_SUCCESS};
  t.add(FUNCTION_GIVING(created, dat_rmr_create, {t.self(kPz), needed(&made)}));
  ONLY_20(t.add(FUNCTION_GIVING(created, dat_rmr_create_for_ep, {t.self(kPz), needed(&made)}));)
  t.add(of_a_window(FUNCTION(dat_rmr_query, {t.self(kRmr), mask(DAT_RMR_FIELD_ALL), needed(&param)})));
  t.add(of_a_window(FUNCTION(
      dat_rmr_bind, {t.self(kRmr),
                     ONLY_20(t.further(kLmr), ) needed(&right)
                         .also("the context of another LMR", &of_another)
                         .also("before the region", &outside)
                         .also("past the end of the region", &past_the_end),
                     good(DAT_MEM_PRIV_REMOTE_READ_FLAG).also("out of range", 0x1000).also("negative", -1),
                     ONLY_20(good(DAT_VA_TYPE_VA)
                                 .also("out of range", 2)
                                 .also("negative", -1)
                                 .also("what such a window cannot", DAT_VA_TYPE_ZB, status(DAT_MODEL_NOT_SUPPORTED)), )
                         t.further(kEp, t.w.bind_ep, DAT_INVALID_HANDLE_EP)
                             .also("unconnected", t.w.good[kEp], state(DAT_INVALID_STATE_EP_UNCONNECTED))
                             .also("without a PZ", t.w.bare_ep, status(DAT_INVALID_STATE))
                             .also("whose EVD has no bind stream", t.w.f.active.ep, status(DAT_INVALID_STATE))
                             .also("of another PZ", t.w.other_zone_ep, status(DAT_PROTECTION_VIOLATION)),
                     any(5), good(DAT_COMPLETION_DEFAULT_FLAG).also("out of range", 0x1000).also("negative", -1),
                     needed(&context)})));
  t.add(of_a_window(FUNCTION(dat_rmr_free, {t.self(kRmr)})));
}

}  // namespace arguments
