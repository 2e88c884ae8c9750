/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_DAT_UDAT_CONFIG_H
#define DAPPLE_DAT_UDAT_CONFIG_H

/* The version that dat_ia_open() requests from the registry. */
#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2

/*
 * Define DAT_THREADSAFE to DAT_TRUE before the first include to open thread-safe IAs. An IA is found only under an
 * entry of dat.conf whose thread-safety field says the same.
 */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

#endif
