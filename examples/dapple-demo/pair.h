/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

#include "client.h"
#include "server.h"

/* Runs both sides on this machine, the server in a process of its own. Returns only if both were right. */
void run_pair(struct server_options* server, struct client_options* client);
