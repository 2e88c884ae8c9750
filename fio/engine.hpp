// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Selects one of the four engines. The sources are compiled once for each.
#pragma once

namespace dapple::fio {

// The way in which writes become persistent: by RDMA alone (the appliance persistency method), or by the server's CPU
// after a message (the general purpose server persistency method).
enum class Method : unsigned char { kAppliance = 1, kGeneral = 2 };

#ifdef DAPPLE_FIO_GENERAL
inline constexpr Method kMethod = Method::kGeneral;
#define DAPPLE_FIO_METHOD "librpma_gpspm_"
#else
inline constexpr Method kMethod = Method::kAppliance;
#define DAPPLE_FIO_METHOD "librpma_apm_"
#endif

#ifdef DAPPLE_FIO_SERVER
inline constexpr bool kIsServer = true;
inline constexpr char kEngineName[] = DAPPLE_FIO_METHOD "server";
#else
inline constexpr bool kIsServer = false;
inline constexpr char kEngineName[] = DAPPLE_FIO_METHOD "client";
#endif
#undef DAPPLE_FIO_METHOD

}  // namespace dapple::fio
