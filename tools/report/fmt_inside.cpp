// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For DAPPLE_PORTABLE: the functions of fmt's library, inside the programs. Debian has no static libfmt. The other
// files are compiled as for the shared one, so both kinds of build use the same objects.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

// The headers leave these to the library.
template auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl<char>(locale_ref) -> char;

}  // namespace detail
FMT_END_NAMESPACE
