// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Errors of the core. The functions of each version convert them to its DAT_RETURN.
#pragma once

#include <cerrno>
#include <cstdint>
#include <tl/expected.hpp>

namespace dapple::udapl {

enum class Type : uint8_t {
#define TYPE(NAME, DAT) NAME,
#include "udapl/api/names.def"
};

enum class Subtype : uint8_t {
#define SUBTYPE(NAME, DAT) NAME,
#define ARGUMENT(NAME) NAME,
#include "udapl/api/names.def"
};

struct Error {
  Type type;
  Subtype subtype = Subtype::kNone;
  friend bool operator==(const Error&, const Error&) = default;
};

template <class T = void>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(Type type, Subtype subtype = Subtype::kNone) {
  return tl::unexpected(Error{type, subtype});
}

// True if a call that does not wait found nothing, or a signal interrupted it.
inline bool found_nothing(int error) {
  return error == EAGAIN || error == EINTR;
}

// True if a call failed for lack of resources that may become free later; then its arguments may be right.
inline bool is_shortage(int error) {
  return error == ENOMEM || error == ENOBUFS || error == EMFILE || error == ENFILE || error == ENOSPC;
}

// Translates the errno of a verbs or rdma_cm call, for callers whose context gives no better meaning.
inline tl::unexpected<Error> fail_errno(int error) {
  switch (error) {
    case ENOMEM:
    case ENOBUFS:
      return fail(Type::kInsufficientResources, Subtype::kMemory);
    case EMFILE:
    case ENFILE:
    case ENOSPC:
      return fail(Type::kInsufficientResources, Subtype::kDevice);
    case EINVAL:
      return fail(Type::kInvalidParameter);
    case EACCES:
    case EPERM:
      return fail(Type::kPrivilegesViolation);
    case EBUSY:
      return fail(Type::kInvalidState);  // something that the device knows of still uses it
    case EADDRINUSE:
      return fail(Type::kConnQualInUse);
    case EADDRNOTAVAIL:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return fail(Type::kInvalidAddress, Subtype::kAddressUnreachable);
    case EAFNOSUPPORT:
      return fail(Type::kInvalidAddress, Subtype::kAddressUnsupported);
    case ETIMEDOUT:
      return fail(Type::kTimeoutExpired);
    case ENOSYS:
    case EOPNOTSUPP:
      return fail(Type::kModelNotSupported);
    default:
      return fail(Type::kInternalError);
  }
}

}  // namespace dapple::udapl
