// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// For dapple-run --hang: notes the events of librdmacm that the peer waits for an answer to, until the program answers.
#pragma once

#include <rdma/rdma_cma.h>

namespace dapple::preload {

// The program has got the event. Notes it if the peer waits for an answer, and forgets the id's earlier one, whose
// attempt to connect is over. Without a free place the event is not noted.
void note_owed_answer(const rdma_cm_event& event);
// The program answers the event of this id, or gives the id up. An attempt counts: if it fails, there is another
// report.
void note_answer(const rdma_cm_id* id);

}  // namespace dapple::preload
