// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// From handles to objects.
#pragma once

#include <dat2/udat.h>

#include "udapl/core/arena.hpp"
#include "udapl/core/object.hpp"

// The registry's: an IA's pointer to the small integer the consumer knows it by, and back.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* ia_handle);

namespace dapple::dat20 {

// The handle a call was dispatched by: its first word led here, so it is one of ours and only its kind is in question.
template <class T>
T* self(DAT_HANDLE handle) noexcept {
  auto* object = static_cast<dat::Object*>(handle);
  return object && object->kind() == T::kKind ? static_cast<T*>(object) : nullptr;
}

// A handle given as a further argument, which may be anything: null unless it is a live object of this kind and IA.
template <class T>
T* argument(DAT_HANDLE handle, const dat::Ia& ia) noexcept {
  T* object = dat::arena<T>().find(handle, T::kKind);
  return object && &object->ia() == &ia ? object : nullptr;
}

inline DAT_IA_HANDLE consumer_handle(dat::Ia& ia) noexcept {
  DAT_IA_HANDLE handle = DAT_HANDLE_NULL;
  if (dats_get_ia_handle(reinterpret_cast<DAT_IA_HANDLE>(&ia), &handle) != DAT_SUCCESS) return DAT_HANDLE_NULL;
  return handle;
}

}  // namespace dapple::dat20
