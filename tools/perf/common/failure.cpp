// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tools/perf/common/failure.hpp"

#include <fmt/format.h>

#include <string_view>

#include "udapl/registry/event_names.hpp"

namespace dapple::perf {

std::string text_of(DAT_RETURN result) {
  const char* type = nullptr;
  const char* subtype = nullptr;
  if (dat_strerror(result, &type, &subtype) != DAT_SUCCESS || !type) return fmt::format("{:#x}", result);
  const bool has_subtype = subtype && *subtype && std::string_view(subtype) != "DAT_NO_SUBTYPE";
  return has_subtype ? fmt::format("{} {}", type, subtype) : type;
}

void check(DAT_RETURN result, const char* call, const char* advice) {
  if (result != DAT_SUCCESS) throw Failure(fmt::format("{}: {}; {}", call, text_of(result), advice));
}

std::string text_of(DAT_DTO_COMPLETION_STATUS status) {
  switch (status) {
    case DAT_DTO_SUCCESS:
      return "success";
    case DAT_DTO_ERR_FLUSHED:
      return "flushed: the peer closed the connection or died";
    case DAT_DTO_ERR_REMOTE_ACCESS:
      return "the peer's memory refused the access";
    case DAT_DTO_ERR_TRANSPORT:
      return "the peer no longer answers";
    case DAT_DTO_ERR_RECEIVER_NOT_READY:
      return "the peer posted no receive";
    default:
      return registry::name_of_dto_status(status);
  }
}

}  // namespace dapple::perf
