// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dat_event_str() and dat_dto_status_str(). Only dapple has them, so each has one version node in either library.
#include "udapl/registry/common/export.hpp"
#include "udapl/registry/event_names.hpp"

DAPPLE_EXPORT const char* dat_event_str(DAT_EVENT_NUMBER event_number) {
  return dapple::registry::name_of_event(event_number);
}

DAPPLE_EXPORT const char* dat_dto_status_str(DAT_DTO_COMPLETION_STATUS status) {
  return dapple::registry::name_of_dto_status(status);
}
