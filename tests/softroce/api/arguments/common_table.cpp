// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Functions of all objects, IAs, and closing them.
#include "tests/softroce/api/arguments/table.hpp"

#if DAPPLE_DAT_MAJOR != 1
#include <dat2/dat_ib_extensions.h>

// The extensions behind this function have tests of their own; this tests its results before it knows an extension. A
// variadic function can only have C linkage, so this call passes nothing after the operation.
static DAT_RETURN extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op) {
  const uint64_t nothing = 0;
  return dat_extension_op(handle, op, nothing, nothing, nothing, nothing, nothing, nothing);
}
#endif

namespace arguments {
namespace {

DAT_CONTEXT context;
DAT_HANDLE_TYPE type;
DAT_EVD_HANDLE evd;
DAT_IA_ATTR ia_attr;
DAT_PROVIDER_ATTR provider_attr{};

}  // namespace

void add_common(Table& t) {
  const DAT_HANDLE object = t.w.good[kEp];
  t.add(FUNCTION(dat_set_consumer_context, {t.any_kind(object), any(77)}));
  t.add(FUNCTION(dat_get_consumer_context, {t.any_kind(object), needed(&context)}));
  t.add(FUNCTION(dat_get_handle_type, {t.any_kind(object), needed(&type)}));
  t.add(FUNCTION(dat_ia_query, {t.self(kIa), optional(&evd), mask64(DAT_IA_FIELD_ALL), needed(&ia_attr),
                                mask64(DAT_PROVIDER_FIELD_ALL), needed(&provider_attr)}));
#if DAPPLE_DAT_MAJOR != 1
  Function extension = FUNCTION_GIVING(
      argument_error(3), extension_op,
      {t.any_kind(object)
           .also("of another kind", t.w.good[kPz], handle_error(DAT_INVALID_HANDLE_EP))
           .also("an IA", t.w.f.ia, handle_error(DAT_INVALID_HANDLE_EP)),
       good(DAT_IB_FETCH_AND_ADD_OP)
           .also("unknown", 0x999, status(DAT_NOT_IMPLEMENTED))
           .also("negative", -1, argument_error(3))  // has the bit of an opening operation, but no name
           .also("one that opens, without a name", DAT_OPEN_EXTENSION_BASE, argument_error(3))
           .also("one that closes, on an EP", DAT_CLOSE_EXTENSION_BASE, handle_error(DAT_INVALID_HANDLE_IA))});
  extension.name = "dat_extension_op";
  // No IA of iWARP has extensions. Until one has, the registry only checks that the handle is possible.
  if (on_iwarp()) {
    extension.result = status(DAT_NOT_IMPLEMENTED);
    for (auto& other : extension.arguments[0].others) {
      if (other.value > 4095 || other.value == word(t.w.f.ia)) other.status = extension.result;
    }
    for (auto& other : extension.arguments[1].others) {
      if (other.value == DAT_CLOSE_EXTENSION_BASE) other.status = extension.result;
    }
  }
  t.add(std::move(extension));
#endif
}

// The last function that is called on a world.
void add_closing(Table& t) {
  t.add(FUNCTION(dat_ia_close,
                 {t.self(kIa, t.w.other.ia), good(DAT_CLOSE_ABRUPT_FLAG)
                                                 .also("out of range", 2)
                                                 .also("negative", -1)
                                                 .also("graceful, with objects left", DAT_CLOSE_GRACEFUL_FLAG,
                                                       state(DAT_INVALID_STATE_IA_IN_USE))}));
}

}  // namespace arguments
