// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "udapl/functions/explained.hpp"

#include <infiniband/dappledv_failure.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <string_view>

#include "udapl/core/log.hpp"
#include "udapl/functions/version.hpp"

namespace dapple::udapl::functions {
namespace {

struct Name {
  DAT_UINT32 value;
  std::string_view text;
};

constexpr Name kTypes[] = {
#define TYPE(NAME, DAT) {static_cast<DAT_UINT32>(DAT), #DAT},
#include "udapl/api/names.def"
};

constexpr Name kSubtypes[] = {
#define SUBTYPE(NAME, DAT) {static_cast<DAT_UINT32>(DAT), #DAT},
#include "udapl/api/names.def"
};

// Empty if the list lacks it.
template <size_t kCount>
std::string name_in(const Name (&names)[kCount], DAT_UINT32 value) {
  for (const Name& name : names) {
    // A name of this provider stands for one that a version lacks.
    if (name.value == value && name.text.starts_with("DAT_")) return std::string(name.text);
  }
  return {};
}

std::string name_of(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype) {
  std::string error = name_in(kTypes, type);
  if (error.empty()) error = "an error";
  const std::string more =
      type == DAT_INVALID_PARAMETER || subtype == DAT_NO_SUBTYPE ? std::string() : name_in(kSubtypes, subtype);
  return more.empty() ? error : error + ", " + more;
}

// Such an answer is no mistake.
bool is_usual(DAT_RETURN_TYPE type) {
  return type == DAT_QUEUE_EMPTY || type == DAT_TIMEOUT_EXPIRED || type == DAT_INTERRUPTED_CALL;
}

std::string argument_name(std::string_view arguments, unsigned number) {
  for (; number > 1; --number) {
    const size_t comma = arguments.find(',');
    if (comma == std::string_view::npos) return {};
    arguments.remove_prefix(comma + 1);
  }
  arguments.remove_prefix(std::min(arguments.find_first_not_of(' '), arguments.size()));
  return std::string(arguments.substr(0, arguments.find(',')));
}

// DAT_INVALID_ARG1 to 10 follow one another. 0: other subtypes of DAT_INVALID_PARAMETER name no argument.
unsigned argument_number(DAT_RETURN_SUBTYPE subtype) {
  if (subtype < DAT_INVALID_ARG1 || subtype > DAT_INVALID_ARG10) return 0;
  return static_cast<unsigned>(subtype) - static_cast<unsigned>(DAT_INVALID_ARG1) + 1;
}

// The arguments of a call.
struct Arguments {
  std::string_view names;
  std::initializer_list<ArgumentValue> values;

  // A function with a variable list has fewer values than arguments.
  ArgumentValue value(unsigned number) const {
    if (number == 0 || number > values.size()) return {ArgumentValue::Kind::kNone, 0};
    return values.begin()[number - 1];
  }
};

bool is_null(ArgumentValue value) {
  return value.kind == ArgumentValue::Kind::kPointer && value.value == 0;
}

std::string text_of(ArgumentValue value) {
  if (is_null(value)) return "NULL";
  if (value.kind == ArgumentValue::Kind::kNumber) return std::to_string(value.value);
  char text[24];
  std::snprintf(text, sizeof text, "0x%" PRIx64, static_cast<uint64_t>(value.value));
  return text;
}

// The kept text may have the value, of the argument or of a member of it.
std::string about_argument(DAT_RETURN_SUBTYPE subtype, const Arguments& arguments) {
  const unsigned number = argument_number(subtype);
  if (number == 0) return "an argument is wrong";
  const std::string name = argument_name(arguments.names, number);
  const ArgumentValue value = arguments.value(number);
  const bool has_value = value.kind != ArgumentValue::Kind::kNone && (is_null(value) || !kept_has_value());
  return "argument " + std::to_string(number) + (name.empty() ? "" : " (" + name + ")") + " is " +
         (has_value ? text_of(value) : "wrong");
}

// The number of the argument whose handle is refused: of most functions the first.
unsigned handle_number(DAT_RETURN_SUBTYPE subtype, std::string_view names) {
  std::string_view wanted;
  if (subtype == DAT_INVALID_HANDLE_EP) wanted = "ep";
  if (subtype == DAT_INVALID_HANDLE_LMR) wanted = "lmr";
  if (subtype == DAT_INVALID_HANDLE_EVD_CR || subtype == DAT_INVALID_HANDLE_EVD_ASYNC) wanted = "evd";
  for (unsigned number = 1;; ++number) {
    const std::string name = argument_name(names, number);
    if (name.empty()) return 1;
    if (name == wanted) return number;
  }
}

// The functions of freed objects do not know their arguments' names.
std::string about_handle(DAT_RETURN_SUBTYPE subtype, const Arguments& arguments) {
  const unsigned number = handle_number(subtype, arguments.names);
  const std::string name = argument_name(arguments.names, number);
  const ArgumentValue value = arguments.value(number);
  const std::string subject = "the handle " + (name.empty() ? "" : name + " ");
  if (is_null(value)) return subject + "is DAT_HANDLE_NULL";
  return subject + (value.kind == ArgumentValue::Kind::kNone ? "" : text_of(value) + " ") +
         "is of another kind, was never given out, or its object is freed";
}

const char* about_state(std::string_view subtype) {
  if (subtype.ends_with("_IN_USE")) return "other objects, or threads, still use the object";
  if (subtype.ends_with("EVD_WAITER")) return "a thread waits on the EVD";
  if (subtype.ends_with("EVD_UNWAITABLE")) return "the EVD is set unwaitable";
  if (subtype.find("EVD_CONFIG") != std::string_view::npos)
    return "an EP of the EVD has completion flags that forbid it";
  if (subtype.ends_with("EP_EVD_CONNECT")) return "the EP has no EVD for connections";
  if (subtype.ends_with("EP_PZ")) return "the EP has no protection zone";
  if (subtype.starts_with("DAT_INVALID_STATE_EP")) return "the EP is in this state, in which the call is not allowed";
  return "the object is in a state in which the call is not allowed";
}

std::string meaning_of(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype, const Arguments& arguments) {
  switch (type) {
    case DAT_INVALID_HANDLE:
      return about_handle(subtype, arguments);
    case DAT_INVALID_PARAMETER:
      return about_argument(subtype, arguments);
    case DAT_INVALID_STATE:
      return about_state(name_in(kSubtypes, subtype));
    case DAT_INSUFFICIENT_RESOURCES:
      return "the memory, the queue, or a limit of the device or of the process does not suffice";
    case DAT_LENGTH_ERROR:
      return "the segments have more bytes than the call allows";
    case DAT_PROTECTION_VIOLATION:
      return "the objects belong to different protection zones, or the bytes are outside of the LMR";
    case DAT_PRIVILEGES_VIOLATION:
      return "the LMR, or the process, lacks the privilege";
    case DAT_MODEL_NOT_SUPPORTED:
      return "the device, or this provider, does not have it";
    case DAT_CONN_QUAL_IN_USE:
      return "another service point, or another program, has the connection qualifier";
    case DAT_QUEUE_FULL:
      return "the EVD is full: take events from it";
    case DAT_INVALID_ADDRESS:
      return "the address cannot be reached, or has no RDMA device";
    case DAT_ABORT:
      return "another thread has ended the wait: the EVD is set unwaitable, or freed";
    case DAT_INTERNAL_ERROR:
      return "libibverbs has lost the EVD's events, or the system has refused to wait for them";
    case DAT_CONN_QUAL_UNAVAILABLE:
      return "librdmacm gives no connection qualifier here: rdma_bind_addr() or rdma_listen() has failed";
    default:
      // DAT 1.2 has no such types, and other names for these errors.
      if (type == kPortInUse) return "another service point, or another program, listens on the port";
      if (type == kCommNotSupported)
        return "the DAT_COMM asks for a family, a type or a protocol of communication that the IA's address lacks";
      return "the call has failed";
  }
}

// The program has made a mistake. Other errors may come to a program that is right.
bool is_mistake(DAT_RETURN_TYPE type) {
  return type == DAT_INVALID_HANDLE || type == DAT_INVALID_PARAMETER || type == DAT_INVALID_STATE ||
         type == DAT_LENGTH_ERROR || type == DAT_PROTECTION_VIOLATION || type == DAT_PRIVILEGES_VIOLATION;
}

}  // namespace

void explain(const char* function, const char* names, std::initializer_list<ArgumentValue> values, DAT_RETURN result,
             unsigned failures) noexcept try {
  const auto type = static_cast<DAT_RETURN_TYPE>(DAT_GET_TYPE(result));
  const auto subtype = static_cast<DAT_RETURN_SUBTYPE>(DAT_GET_SUBTYPE(result));
  if (is_usual(type)) return;
  unsigned now = 0;
  const char* verb = dappledv_refusal(&now);
  const bool is_verbs_error = verb && now != failures;
  const Arguments arguments = {names, values};
  std::string meaning = meaning_of(type, subtype, arguments);
  if (*kept_refusal() != 0) meaning += std::string(": ") + kept_refusal();
  const std::string reason = is_verbs_error ? verb : meaning + ".";
  const std::string text = std::string(function) + "() fails with " + name_of(type, subtype) + ": " + reason;
  const bool lacks_address = type == DAT_INVALID_PARAMETER && is_null(arguments.value(argument_number(subtype)));
  const std::string remedy =
      (lacks_address ? "Pass the address of an object. See " : "See ") + std::string(function) + "(3dat).";
  // The verb has its report.
  if (!is_verbs_error && is_mistake(type) && dappledv_report_failure(text.c_str(), remedy.c_str()) != 0) return;
  log_error("%s %s", text.c_str(), remedy.c_str());
} catch (...) {
  // Without memory there is no line.
}

}  // namespace dapple::udapl::functions
