// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::dat {

/// Holds a T that is never destroyed: other exit handlers may still call the library when its own would run.
template <class T>
union NeverDestroyed {
  NeverDestroyed() : value() {}
  ~NeverDestroyed() {}
  T value;
};

}  // namespace dapple::dat
