# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""RoCEv2 packets by hand, and the raw sockets that send them. Independent of the code under test."""

import select
import socket
import struct
import time
import zlib
from collections.abc import Iterator

PORT = 4791
MTU = 4096
QKEY = 0x11223344
PEER_QPN = 0x777000  # the peer that the victim's queue pairs are connected to; nobody has it
FIRST_PSN = 0xFFFFF0
RC, UC, UD = 0, 1, 3
SEND_ONLY, WRITE_ONLY, WRITE_IMMEDIATE, READ, ACKNOWLEDGE, ATOMIC_ANSWER, COMPARE_SWAP, FETCH_ADD = 4, 10, 11, 12, 17, 18, 19, 20
IPV4_HEADER = ">BBHHHBBH4s4s"
DONT_FRAGMENT = 0x4000


def bth(opcode: int, qpn: int, psn: int = 0, *, pad: int = 0, pkey: int = 0xFFFF, version: int = 0) -> bytes:
    return struct.pack(">BBHII", opcode, 0x40 | pad << 4 | version, pkey, qpn, 1 << 31 | psn & 0xFFFFFF)


def deth(qkey: int = QKEY) -> bytes:
    return struct.pack(">II", qkey, 0x123)


def reth(address: int, rkey: int, length: int) -> bytes:
    return struct.pack(">QII", address, rkey, length)


def atomic_eth(address: int, rkey: int, add: int) -> bytes:
    return struct.pack(">QIQQ", address, rkey, add, 0)


def message(size: int) -> tuple[bytes, int]:
    """A payload that the victim knows, padded, and its pad."""
    return (b"M" + b"x" * (size - 1) if size else b"") + b"\0" * (-size % 4), -size % 4


def is_ipv6(address: str) -> bool:
    return ":" in address


def packed(address: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if is_ipv6(address) else socket.AF_INET, address)


def icrc(source: str, destination: str, source_port: int, transport: bytes, identification: int = 0, flags: int = DONT_FRAGMENT) -> bytes:
    size = 8 + len(transport) + 4
    masked = transport[:4] + b"\xff" + transport[5:] if len(transport) > 4 else transport
    if is_ipv6(source):
        ip = struct.pack(">IHBB", 0x6FFFFFFF, size, 17, 0xFF) + packed(source) + packed(destination)
    else:
        ip = struct.pack(IPV4_HEADER, 0x45, 0xFF, 20 + size, identification, flags, 0xFF, 17, 0xFFFF, packed(source), packed(destination))
    udp = struct.pack(">HHHH", source_port, PORT, size, 0xFFFF)
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + ip + udp + masked))


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF or 0xFFFF


def datagram(source: str, destination: str, source_port: int, transport: bytes) -> bytes:
    """The UDP header and what follows. IPv4 needs no checksum."""
    size = 8 + len(transport)
    header = struct.pack(">HHH", source_port, PORT, size)
    if not is_ipv6(source):
        return header + b"\0\0" + transport
    pseudo = packed(source) + packed(destination) + struct.pack(">II", size, 17)
    return header + struct.pack(">H", checksum(pseudo + header + b"\0\0" + transport)) + transport


class Sender:
    """Sends whole IP packets to one address."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.port = 50000
        self.identification = 0
        family = socket.AF_INET6 if is_ipv6(address) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def put(self, packet: bytes) -> None:
        self.socket.sendto(packet, (self.address, 0))

    def ipv4(self, body: bytes, source: str, *, offset: int = 0, more: bool = False, options: bytes = b"", flags: int = 0) -> bytes:
        words = 5 + len(options) // 4
        fragment = flags | (0x2000 if more else 0) | offset // 8
        header = (0x40 | words, 0, words * 4 + len(body), self.identification, fragment, 64, 17, 0, packed(source), packed(self.address))
        return struct.pack(IPV4_HEADER, *header) + options + body

    def ipv6(self, next_header: int, body: bytes, source: str) -> bytes:
        return struct.pack(">IHBB", 0x60000000, len(body), next_header, 64) + packed(source) + packed(self.address) + body

    def send(self, transport: bytes, source: str = "", *, damaged: bool = False) -> None:
        """A usual packet."""
        source = source or self.address
        self.identification = 0
        crc = icrc(source, self.address, self.port, transport)
        body = datagram(source, self.address, self.port, transport + (bytes([crc[0] ^ 1]) + crc[1:] if damaged else crc))
        self.put(self.ipv6(17, body, source) if is_ipv6(source) else self.ipv4(body, source, flags=DONT_FRAGMENT))


class Listener:
    """The packets that the victim sends to its peer."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self.socket.bind(("lo", 0x0800))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)

    def packets(self, seconds: float) -> Iterator[bytes]:
        """Those that come within this time, from the BTH on."""
        end = time.monotonic() + seconds
        while select.select([self.socket], [], [], max(0, end - time.monotonic()))[0]:
            data, where = self.socket.recvfrom(65536)
            # On lo each packet is there as an outgoing one, too.
            if where[2] == 0 and data[9] == socket.IPPROTO_UDP and data[33:36] == PEER_QPN.to_bytes(3, "big"):
                yield data[28:]
