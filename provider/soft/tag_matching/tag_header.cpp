// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
#include "provider/soft/tag_matching/tag_header.hpp"

#include <infiniband/tm_types.h>

#include "roce/packet/big_endian.hpp"

namespace dapple::soft {

static_assert(sizeof(ibv_tmh) == kTagHeaderSize && sizeof(ibv_tmh) + sizeof(ibv_rvh) == kRendezvousHeaderSize);

TagHeader parse_tag_header(std::span<const std::byte> bytes) {
  TagHeader header;
  if (bytes.size() < kTagHeaderSize) return header;
  const auto operation = static_cast<uint8_t>(bytes[offsetof(ibv_tmh, opcode)]);
  if (operation != IBV_TMH_EAGER && operation != IBV_TMH_RNDV) return header;
  if (operation == IBV_TMH_RNDV && bytes.size() < kRendezvousHeaderSize) return header;
  header.kind = operation == IBV_TMH_EAGER ? TagHeader::Kind::kEager : TagHeader::Kind::kRendezvous;
  header.tag.tag = roce::load_be64(&bytes[offsetof(ibv_tmh, tag)]);
  header.tag.application = roce::load_be32(&bytes[offsetof(ibv_tmh, app_ctx)]);
  if (operation == IBV_TMH_EAGER) return header;
  header.address = roce::load_be64(&bytes[kTagHeaderSize + offsetof(ibv_rvh, va)]);
  header.rkey = roce::load_be32(&bytes[kTagHeaderSize + offsetof(ibv_rvh, rkey)]);
  header.length = roce::load_be32(&bytes[kTagHeaderSize + offsetof(ibv_rvh, len)]);
  return header;
}

void make_end_of_rendezvous(std::span<std::byte, kRendezvousHeaderSize> headers) {
  headers[offsetof(ibv_tmh, opcode)] = std::byte{IBV_TMH_FIN};
}

}  // namespace dapple::soft
