// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#pragma once

namespace dapple::registry {

/// Holds a T that is never destroyed, because exit handlers may call the library after its own destructors would have
/// run.
template <class T>
union NeverDestroyed {
  NeverDestroyed() : value() {}
  ~NeverDestroyed() {}
  T value;
};

}  // namespace dapple::registry
