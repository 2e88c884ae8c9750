// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/explain/noted_objects.hpp"

#include "provider/soft/explain/holders.hpp"
#include "provider/soft/explain/object_names.hpp"

namespace dapple::soft::explain {

// These use no other object.
void note_made(ibv_pd*) {}
void note_made(ibv_cq*) {}
void note_made(ibv_cq_ex*) {}

void note_made(ibv_mr* mr) {
  Holders::get().add(mr, name_of(mr), "made by ibv_reg_mr", {mr->pd});
}

void note_made(ibv_mw* mw) {
  Holders::get().add(mw, name_of(mw), "made by ibv_alloc_mw", {mw->pd});
}

void note_made(ibv_srq* srq) {
  Holders::get().add(srq, name_of(srq), "made by ibv_create_srq", {srq->pd});
}

void note_made(ibv_qp* qp) {
  Holders::get().add(qp, name_of(qp), "made by ibv_create_qp", {qp->pd, qp->send_cq, qp->recv_cq, qp->srq});
}

void note_made(ibv_ah* ah) {
  Holders::get().add(ah, name_of(ah), "made by ibv_create_ah", {ah->pd});
}

void note_end(const void* object) {
  Holders::get().remove(object);
}

}  // namespace dapple::soft::explain
