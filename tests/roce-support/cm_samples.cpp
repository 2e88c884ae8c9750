// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "tests/roce-support/cm_samples.hpp"

namespace dapple::roce::cm::test {

void count_up(std::span<std::byte> bytes, uint8_t first) {
  for (std::byte& byte : bytes) byte = std::byte{first++};
}

Gid ipv4_gid(uint8_t last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, last};
}

Gid ipv6_gid(uint8_t last) {
  return {0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
}

Req sample_req() {
  Req req;
  req.comm_id = 0xC1C2C3C4;
  req.service_id = service_id_of(PortSpace::kTcp, 7174);
  req.ca_guid = 0x6162636465666768;
  req.qkey = 0x11223344;
  req.qpn = 0x0A0B0C;
  req.responder_resources = 0xF1;
  req.initiator_depth = 0xF2;
  req.remote_response_timeout = 21;
  req.service = Service::kUnreliable;
  req.flow_control = true;
  req.psn = 0xD1D2D3;
  req.local_response_timeout = 19;
  req.retry_count = 5;
  req.pkey = 0x8123;
  req.mtu = 4;
  req.rdc_exists = true;
  req.rnr_retry_count = 6;
  req.max_cm_retries = 11;
  req.srq = true;
  req.extended_service = 2;
  req.local_lid = 0xFFFE;
  req.remote_lid = 0xFFFD;
  req.local_gid = ipv4_gid(1);
  req.remote_gid = ipv4_gid(2);
  req.flow_label = 0xABCDE;
  req.packet_rate = 0x25;
  req.traffic_class = 0x6E;
  req.hop_limit = 63;
  req.service_level = 9;
  req.subnet_local = true;
  req.ack_timeout = 18;
  req.ece = {.vendor = 0x9A9B9C, .options = 0x8A8B8C8D};
  count_up(req.private_data, 0x10);
  write_ip_header(sample_ip_header(false), req.private_data);
  return req;
}

Mra sample_mra() {
  Mra mra;
  mra.comm_id = 0x31323334;
  mra.remote_comm_id = 0x41424344;
  mra.subject = Subject::kOther;
  mra.service_timeout = 24;
  count_up(mra.private_data, 0x20);
  return mra;
}

Rej sample_rej() {
  Rej rej;
  rej.comm_id = 0x31323335;
  rej.remote_comm_id = 0x41424345;
  rej.subject = Subject::kRep;
  rej.info_size = 72;
  rej.reason = RejectReason::kStaleConnection;
  count_up(rej.info, 0x30);
  count_up(rej.private_data, 0x90);
  return rej;
}

Rep sample_rep() {
  Rep rep;
  rep.comm_id = 0x31323336;
  rep.remote_comm_id = 0x41424346;
  rep.qkey = 0x55667788;
  rep.qpn = 0x1A1B1C;
  rep.eecn = 0x2A2B2C;
  rep.psn = 0x3A3B3C;
  rep.responder_resources = 0xE1;
  rep.initiator_depth = 0xE2;
  rep.target_ack_delay = 15;
  rep.failover_accepted = 2;
  rep.flow_control = true;
  rep.rnr_retry_count = 3;
  rep.srq = true;
  rep.ca_guid = 0x7172737475767778;
  rep.ece = {.vendor = 0x9D9E9F, .options = 0x8E8F9091};
  count_up(rep.private_data, 0x40);
  return rep;
}

Rtu sample_rtu() {
  Rtu rtu;
  rtu.comm_id = 0x31323337;
  rtu.remote_comm_id = 0x41424347;
  count_up(rtu.private_data, 0x50);
  return rtu;
}

Dreq sample_dreq() {
  Dreq dreq;
  dreq.comm_id = 0x31323338;
  dreq.remote_comm_id = 0x41424348;
  dreq.remote_qpn = 0x4A4B4C;
  count_up(dreq.private_data, 0x60);
  return dreq;
}

Drep sample_drep() {
  Drep drep;
  drep.comm_id = 0x31323339;
  drep.remote_comm_id = 0x41424349;
  count_up(drep.private_data, 0x70);
  return drep;
}

SidrReq sample_sidr_req() {
  SidrReq request;
  request.request_id = 0x3132333A;
  request.pkey = 0x8765;
  request.service_id = service_id_of(PortSpace::kUdp, 7175);
  count_up(request.private_data, 0x10);
  write_ip_header(sample_ip_header(true), request.private_data);
  return request;
}

SidrRep sample_sidr_rep() {
  SidrRep reply;
  reply.request_id = 0x4142434A;
  reply.status = SidrStatus::kNoQp;
  reply.info_size = 71;
  reply.qpn = 0x5A5B5C;
  reply.service_id = service_id_of(PortSpace::kUdp, 7176);
  reply.qkey = 0x01234567;
  count_up(reply.info, 0x80);
  count_up(reply.private_data, 0xB0);
  return reply;
}

IpHeader sample_ip_header(bool ipv6) {
  return {ipv6, 54321, ipv6 ? ipv6_gid(1) : ipv4_gid(1), ipv6 ? ipv6_gid(2) : ipv4_gid(2)};
}

}  // namespace dapple::roce::cm::test
