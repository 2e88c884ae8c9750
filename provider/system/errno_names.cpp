// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/system/errno_names.hpp"

#include <errno.h>

#include "provider/system/name_table.hpp"

namespace dapple::soft {
namespace {

constexpr Named<int> kErrors[] = {
    {"EPERM", EPERM},
    {"ENOENT", ENOENT},
    {"EINTR", EINTR},
    {"EIO", EIO},
    {"ENXIO", ENXIO},
    {"E2BIG", E2BIG},
    {"EBADF", EBADF},
    {"EAGAIN", EAGAIN},
    {"ENOMEM", ENOMEM},
    {"EACCES", EACCES},
    {"EFAULT", EFAULT},
    {"EBUSY", EBUSY},
    {"ENODEV", ENODEV},
    {"EINVAL", EINVAL},
    {"ENFILE", ENFILE},
    {"EMFILE", EMFILE},
    {"ENOSPC", ENOSPC},
    {"ENODATA", ENODATA},
    {"ENOSYS", ENOSYS},
    {"EOPNOTSUPP", EOPNOTSUPP},
    {"ETIMEDOUT", ETIMEDOUT},
    {"EEXIST", EEXIST},
    {"EISCONN", EISCONN},
    {"ENOTCONN", ENOTCONN},
    {"ECONNRESET", ECONNRESET},
    {"EADDRINUSE", EADDRINUSE},
    {"EADDRNOTAVAIL", EADDRNOTAVAIL},
    {"ECONNREFUSED", ECONNREFUSED},
    {"ENETUNREACH", ENETUNREACH},
    {"EHOSTUNREACH", EHOSTUNREACH},
};

}  // namespace

std::string_view errno_name(int error) {
  return name_in(kErrors, error, {});
}

int errno_of(std::string_view name) {
  return value_in(kErrors, name, 0);
}

}  // namespace dapple::soft
