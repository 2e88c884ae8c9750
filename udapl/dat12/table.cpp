// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The provider table of DAT 1.2, and the table of freed objects.
#include "udapl/face/table.hpp"

#include "udapl/face/provider.hpp"
#include "udapl/face/version.hpp"

namespace dapple::face {
namespace {

template <class Visit>
void for_each_slot(DAT_PROVIDER& t, Visit visit) {
  for_each_common_slot(t, visit);
}

constexpr size_t kSlots = 68;
static_assert(sizeof(DAT_PROVIDER) == (kSlots + 2) * sizeof(void*));

}  // namespace

const DAT_PROVIDER& dead_table() {
  static const DAT_PROVIDER table = [] {
    DAT_PROVIDER dead{};
    dead.device_name = "freed";
    dead.extension = reinterpret_cast<DAT_PVOID>(kTableMark);  // NOLINT(performance-no-int-to-ptr): it is a number
    for_each_slot(dead, RefuseHandle());
    return dead;
  }();
  return table;
}

void refuse_everything(DAT_PROVIDER& table) {
  for_each_slot(table, RefuseEverything());
}

DAT_PROVIDER make_table(const char* name, DAT_IA_OPEN_FUNC ia_open) {
  DAT_PROVIDER t{};
  for_each_slot(t, NotImplemented());
  fill_common_slots(t, name);
  t.ia_open_func = ia_open;
  return t;
}

}  // namespace dapple::face
