// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// One message of connection management of every kind, each field with a value of its own that fills its width.
#pragma once

#include <span>

#include "roce/cm/ip_service.hpp"
#include "roce/cm/mad.hpp"

namespace dapple::roce::cm::test {

inline constexpr uint64_t kSampleTransaction = 0xA1A2A3A4A5A6A7A8;

// Bytes that count up from `first`.
void count_up(std::span<std::byte> bytes, uint8_t first);

Gid ipv4_gid(uint8_t last);
Gid ipv6_gid(uint8_t last);

Req sample_req();
Mra sample_mra();
Rej sample_rej();
Rep sample_rep();
Rtu sample_rtu();
Dreq sample_dreq();
Drep sample_drep();
SidrReq sample_sidr_req();
SidrRep sample_sidr_rep();
IpHeader sample_ip_header(bool ipv6);

}  // namespace dapple::roce::cm::test
