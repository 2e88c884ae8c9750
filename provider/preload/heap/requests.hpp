// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The ids that the program has got with requests for a connection. It must destroy each of them.
#pragma once

#include <stddef.h>

namespace dapple::heap {

// These functions are for any thread. With too many ids, the others are not noted.

// The listener's request for a connection brought the id.
void note_request(const void* id, const void* listener);
// The connection of the id is rejected or has ended. Ids of no request are ignored.
void note_end_of_connection(const void* id);
// The id is destroyed.
void forget_request(const void* id);
// Those that the program has left alone: their connections had ended before a later request of their listener came.
// Returns their number, and writes at most `most` of them.
size_t ids_left_alone(const void** ids, size_t most);

}  // namespace dapple::heap
