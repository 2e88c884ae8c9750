// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Queue pairs for which peers on this host copy bytes. A queue pair is published while its attributes stay as they are.
#ifndef DAPPLE_PROVIDER_SOFT_PLACEMENT_QP_PUBLICATION_HPP
#define DAPPLE_PROVIDER_SOFT_PLACEMENT_QP_PUBLICATION_HPP

#include "provider/soft/objects.hpp"

namespace dapple::soft {

// Without the queue pair's lock, both. After a change: publishes it if its state allows it.
void publish_qp(Qp& qp);
// Before a change and before its end: no peer copies for it any more when this returns.
void revoke_qp(Qp& qp);

}  // namespace dapple::soft

#endif  // DAPPLE_PROVIDER_SOFT_PLACEMENT_QP_PUBLICATION_HPP
