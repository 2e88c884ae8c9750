// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The functions behind the slots of the provider table, and the objects of their handles. They have the parameters of
// the slots, but the object instead of its handle: the table checks the handle (table.cpp). That costs a jump, so the
// functions that are called most often check their handle themselves.
#pragma once

#include <type_traits>

#include "udapl/core/connection/cr.hpp"
#include "udapl/core/connection/csp.hpp"
#include "udapl/core/connection/psp.hpp"
#include "udapl/core/connection/rsp.hpp"
#include "udapl/core/endpoint/ep.hpp"
#include "udapl/core/endpoint/srq.hpp"
#include "udapl/core/events/cno.hpp"
#include "udapl/core/events/evd.hpp"
#include "udapl/core/ia/ia.hpp"
#include "udapl/core/memory/lmr.hpp"
#include "udapl/core/memory/pz.hpp"
#include "udapl/core/memory/rmr.hpp"
#include "udapl/functions/convert.hpp"
#include "udapl/functions/handles.hpp"

namespace dapple::udapl::functions {

// The class of the objects whose bad handle has this subtype of DAT_INVALID_HANDLE; void if there are several.
template <DAT_RETURN_SUBTYPE>
struct ClassOf {
  using Type = void;
};
#define CLASS_OF(SUBTYPE, CLASS) \
  template <>                    \
  struct ClassOf<SUBTYPE> {      \
    using Type = CLASS;          \
  };
CLASS_OF(DAT_INVALID_HANDLE_IA, Ia)
CLASS_OF(DAT_INVALID_HANDLE_PZ, Pz)
CLASS_OF(DAT_INVALID_HANDLE_LMR, Lmr)
CLASS_OF(DAT_INVALID_HANDLE_RMR, Rmr)
CLASS_OF(DAT_INVALID_HANDLE_SRQ, Srq)
CLASS_OF(DAT_INVALID_HANDLE_EP, Ep)
CLASS_OF(DAT_INVALID_HANDLE_PSP, Psp)
CLASS_OF(DAT_INVALID_HANDLE_RSP, Rsp)
CLASS_OF(DAT_INVALID_HANDLE_CR, Cr)
CLASS_OF(DAT_INVALID_HANDLE_EVD_REQUEST, Evd)
CLASS_OF(DAT_INVALID_HANDLE_CNO, Cno)
#if DAPPLE_DAT_MAJOR >= 2
CLASS_OF(DAT_INVALID_HANDLE_CSP, Csp)
#endif
#undef CLASS_OF

// The type of the function behind a slot.
template <class Class, class Slot>
struct Behind {
  using Type = std::remove_pointer_t<Slot>;
};
template <class Class, class Handle, class... Rest>
requires(!std::is_void_v<Class>) struct Behind<Class, DAT_RETURN (*)(Handle, Rest...)> {
  using Type = DAT_RETURN(Class&, Rest...);
};

#define SLOT(SUBTYPE, NAME) Behind<ClassOf<SUBTYPE>::Type, decltype(DAT_PROVIDER::NAME##_func)>::Type NAME;
#define FUNCTIONFAST(SUBTYPE, NAME, ...) std::remove_pointer_t<decltype(DAT_PROVIDER::NAME##_func)> NAME;
#include "udapl/api/functions.def"

}  // namespace dapple::udapl::functions
