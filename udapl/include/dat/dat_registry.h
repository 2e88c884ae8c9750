/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/* The interface between a provider library and the registry. */
#ifndef DAPPLE_DAT_DAT_REGISTRY_H
#define DAPPLE_DAT_DAT_REGISTRY_H

#include <dat/udat_redirection.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A provider library exports both. The registry calls init at the first open of an entry of dat.conf, with the entry
 * and its ia_params string; init calls back dat_registry_add_provider(). It calls fini, then unloads, at the last
 * close. The arguments live until the call returns.
 */
#define DAT_PROVIDER_INIT_FUNC_NAME dat_provider_init
#define DAT_PROVIDER_FINI_FUNC_NAME dat_provider_fini
#define DAT_PROVIDER_INIT_FUNC_STR "dat_provider_init"
#define DAT_PROVIDER_FINI_FUNC_STR "dat_provider_fini"

typedef void(DAT_API* DAT_PROVIDER_INIT_FUNC)(const DAT_PROVIDER_INFO* info, const char* instance_data);
typedef void(DAT_API* DAT_PROVIDER_FINI_FUNC)(const DAT_PROVIDER_INFO* info);

/*
 * Offers a provider to dat_ia_openv(), from a provider's init or from a program that is linked with one. *info is
 * copied; *provider must stay until it is removed. DAT_PROVIDER_ALREADY_REGISTERED if an equal info exists.
 */
extern DAT_RETURN DAT_API dat_registry_add_provider(DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info);
/* DAT_PROVIDER_IN_USE while an IA is open, DAT_PROVIDER_NOT_FOUND if it does not exist. */
extern DAT_RETURN DAT_API dat_registry_remove_provider(DAT_PROVIDER* provider, const DAT_PROVIDER_INFO* info);

#ifdef __cplusplus
}
#endif

#endif
