// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The contents of sysfs' files of an RDMA device, as the kernel writes them: each with its end of line.
#pragma once

#include <cstdint>
#include <string>

namespace dapple::face {

std::string guid_text(uint64_t guid);         // in the host's byte order: "5054:00ff:fe12:3456"
std::string gid_text(const uint8_t gid[16]);  // "fe80:0000:0000:0000:5054:00ff:fe12:3456"
std::string state_text(bool up);              // "4: ACTIVE"
std::string physical_state_text(bool up);     // "5: LinkUp"
// IBTA's numbers of speed and width, which are bits: "400 Gb/sec (4X NDR)".
std::string rate_text(uint32_t speed, uint32_t width);
// Tenths of GT/s: "32.0 GT/s PCIe".
std::string pci_speed_text(uint32_t tenths);
std::string number_text(uint64_t number);
std::string hexadecimal_text(uint32_t number, int digits);  // "0x15b3"
// A list of CPUs, "0-3,8", as sysfs' mask, "0000010f". Groups of 32 CPUs are separated by commas.
std::string cpu_mask_text(const char* list);
// "0000:3b:00.0", without the end of line.
std::string pci_name(uint32_t domain, uint32_t bus, uint32_t slot, uint32_t function);

}  // namespace dapple::face
