// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The part of a tree's folder where dappled makes new entries before they take their places, and where the old ones
// end. An entry's name there is its path in the folder, with another character for '/'. So the kernel still knows the
// path of an old file that a program has open.
#pragma once

namespace dapple::soft {

inline constexpr char kTreeStage[] = ".dapple-next";
inline constexpr char kStagedSlash = '|';

}  // namespace dapple::soft
