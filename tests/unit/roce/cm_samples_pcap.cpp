// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// cm-samples-pcap FILE: writes a message of connection management of every kind to FILE, and to the standard output the
// fields that cm-dissector asks tshark for: a line for each message, `name=value` with a tab between two fields.
#include <array>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "tests/roce-support/cm_samples.hpp"
#include "tests/roce-support/frame.hpp"
#include "tests/roce-support/pcap.hpp"

using namespace dapple::roce;
using namespace dapple::roce::cm;
using namespace dapple::roce::cm::test;
using dapple::roce::test::PcapFile;

namespace {

std::string number(uint64_t value) {
  return std::to_string(value);
}

std::string hex(uint64_t value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%0*" PRIx64, digits, value);
  return text.data();
}

std::string raw(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += hex(static_cast<uint8_t>(byte), 2).substr(2);
  return text;
}

struct Line {
  std::string text;

  Line& add(const char* name, const std::string& value) {
    text += (text.empty() ? "" : "\t") + std::string(name) + "=" + value;
    return *this;
  }
};

Line line_of(const Req& m) {
  Line line;
  line.add("cm.req", hex(m.comm_id, 8)).add("cm.req.serviceid", hex(m.service_id, 16));
  line.add("cm.req.serviceid.dport", hex(port_of(m.service_id), 4));
  line.add("cm.req.localcaguid", hex(m.ca_guid, 16)).add("cm.req.localqkey", hex(m.qkey, 8));
  line.add("cm.req.localqpn", hex(m.qpn, 6)).add("cm.req.responderres", hex(m.responder_resources, 2));
  line.add("cm.req.initdepth", hex(m.initiator_depth, 2));
  line.add("cm.req.remoteresptout", hex(m.remote_response_timeout, 2));
  line.add("cm.req.transpsvctype", hex(static_cast<uint8_t>(m.service), 2));
  line.add("cm.req.e2eflowctrl", hex(m.flow_control, 2)).add("cm.req.startpsn", hex(m.psn, 6));
  line.add("cm.req.localresptout", hex(m.local_response_timeout, 2)).add("cm.req.retrcount", hex(m.retry_count, 2));
  line.add("cm.req.pkey", hex(m.pkey, 4)).add("cm.req.pppmtu", hex(m.mtu, 2));
  line.add("cm.req.rdcexist", hex(m.rdc_exists, 2)).add("cm.req.rnrretrcount", hex(m.rnr_retry_count, 2));
  line.add("cm.req.maxcmretr", hex(m.max_cm_retries, 2)).add("cm.req.srq", hex(m.srq, 2));
  line.add("cm.req.ext_transport", hex(m.extended_service, 2));
  line.add("cm.req.prim_locallid", number(m.local_lid)).add("cm.req.prim_remotelid", number(m.remote_lid));
  line.add("cm.req.prim_localgid_ipv4", "192.0.2.1").add("cm.req.prim_remotegid_ipv4", "192.0.2.2");
  // Without the flow label and the packet rate: tshark 4.0 takes the first 12 bits for the one and 6 of those for the
  // other.
  line.add("cm.req.prim_tfcclass", hex(m.traffic_class, 2)).add("cm.req.prim_hoplim", hex(m.hop_limit, 2));
  line.add("cm.req.prim_sl", hex(m.service_level, 2)).add("cm.req.prim_subnetlocal", hex(m.subnet_local, 2));
  line.add("cm.req.prim_localacktout", hex(m.ack_timeout, 2));
  line.add("cm.req.ip_cm.ipv", hex(4, 2)).add("cm.req.ip_cm.sport", hex(54321, 4));
  line.add("cm.req.ip_cm.sip4", "192.0.2.1").add("cm.req.ip_cm.dip4", "192.0.2.2");
  line.add("cm.req.ip_cm.private", raw(std::span(m.private_data).subspan(kIpHeaderSize)));
  return line;
}

Line line_of(const Rej& m) {
  Line line;
  line.add("cm.rej.localcommid", hex(m.comm_id, 8)).add("cm.rej.remotecommid", hex(m.remote_comm_id, 8));
  line.add("cm.rej.msgrej", hex(static_cast<uint8_t>(m.subject), 2)).add("cm.rej.rejinfolen", hex(m.info_size, 2));
  line.add("cm.rej.reason", hex(static_cast<uint16_t>(m.reason), 4)).add("cm.rej.ari", raw(m.info));
  line.add("cm.rej.private", raw(m.private_data));
  return line;
}

Line line_of(const Rep& m) {
  Line line;
  line.add("cm.rep", hex(m.comm_id, 8)).add("cm.rep.remotecommid", hex(m.remote_comm_id, 8));
  line.add("cm.rep.localqkey", hex(m.qkey, 8)).add("cm.rep.localqpn", hex(m.qpn, 6));
  line.add("cm.rep.localeecn", hex(m.eecn, 6)).add("cm.rep.startpsn", hex(m.psn, 6));
  line.add("cm.rep.respres", hex(m.responder_resources, 2)).add("cm.rep.initdepth", hex(m.initiator_depth, 2));
  line.add("cm.rep.tgtackdelay", hex(m.target_ack_delay, 2)).add("cm.rep.failoveracc", hex(m.failover_accepted, 2));
  line.add("cm.rep.e2eflowctrl", hex(m.flow_control, 2)).add("cm.rep.rnrretrcount", hex(m.rnr_retry_count, 2));
  line.add("cm.rep.srq", hex(m.srq, 2)).add("cm.rep.localcaguid", hex(m.ca_guid, 16));
  line.add("cm.rep.private", raw(m.private_data));
  return line;
}

Line line_of(const Rtu& m) {
  Line line;
  line.add("cm.rtu.localcommid", hex(m.comm_id, 8)).add("cm.rtu.remotecommid", hex(m.remote_comm_id, 8));
  line.add("cm.rtu.private", raw(m.private_data));
  return line;
}

Line line_of(const Dreq& m) {
  Line line;
  line.add("cm.dreq.localcommid", hex(m.comm_id, 8)).add("cm.dreq.remotecommid", hex(m.remote_comm_id, 8));
  line.add("cm.req.remoteqpneecn", hex(m.remote_qpn, 6)).add("cm.dreq.private", raw(m.private_data));
  return line;
}

Line line_of(const Drep& m) {
  Line line;
  line.add("cm.drsp.localcommid", hex(m.comm_id, 8)).add("cm.drsp.remotecommid", hex(m.remote_comm_id, 8));
  line.add("cm.drsp.private", raw(m.private_data));
  return line;
}

// Messages of which tshark knows only the header.
template <typename Message>
Line line_of(const Message&) {
  return {};
}

template <typename Message>
void write(PcapFile& file, Attribute attribute, const Message& message) {
  const Mad mad = make_mad(kSampleTransaction, message);
  Headers headers;
  headers.opcode = opcode_of(Transport::kUd, Operation::kSendOnly);
  headers.destination_qpn = kGsiQpn;
  headers.deth = {kGsiQkey, kGsiQpn};
  const IcrcAddresses addresses = dapple::roce::test::sample_addresses(false);
  file.write(static_cast<uint64_t>(attribute),
             dapple::roce::test::frame_of(addresses, dapple::roce::test::transport_of(headers, mad)));
  uint32_t modifier = 0;
  if constexpr (requires { message.ece; }) modifier = message.ece.options;
  Line line;
  line.add("mad.baseversion", hex(1, 2)).add("mad.mgmtclass", hex(7, 2)).add("mad.classversion", hex(2, 2));
  line.add("mad.method", hex(3, 2)).add("mad.status", hex(0, 4));
  line.add("mad.transactionid", hex(kSampleTransaction, 16));
  line.add("mad.attributeid", hex(static_cast<uint16_t>(attribute), 4)).add("mad.attributemodifier", hex(modifier, 8));
  const Line body = line_of(message);
  std::printf("%s%s%s\n", line.text.c_str(), body.text.empty() ? "" : "\t", body.text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  PcapFile file(argv[1]);
  write(file, Attribute::kReq, sample_req());
  write(file, Attribute::kMra, sample_mra());
  write(file, Attribute::kRej, sample_rej());
  write(file, Attribute::kRep, sample_rep());
  write(file, Attribute::kRtu, sample_rtu());
  write(file, Attribute::kDreq, sample_dreq());
  write(file, Attribute::kDrep, sample_drep());
  write(file, Attribute::kSidrReq, sample_sidr_req());
  write(file, Attribute::kSidrRep, sample_sidr_rep());
  return file.close() ? 0 : 1;
}
