# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
"""The rows of the table: what is measured, beside what, and the target of each."""

from collections.abc import Callable
from dataclasses import dataclass

from programs import fi_pingpong, uct_latency, ucx_bandwidth, udp_pingpong
from stand import Stand

Measure = Callable[[Stand], float]
KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Row:
    name: str  # for --rows, and the key of its results
    group: str  # the table that it stands in
    title: str
    rival: str
    unit: str
    target: float  # of ours divided by the rival's
    ours: Measure | None  # None: measured in a guest
    theirs: Measure | None
    lower_is_better: bool = True
    # Averages are as good as their best round; other programs only make them worse. p50 has its median.
    best: bool = True
    raw: Measure | None = None  # the cost that both contain: it is subtracted from both figures
    beside: tuple[str, Measure | None] | None = None  # another program, for information
    limit: str = ""  # the machine's own, of bench-limits
    wish: float | None = None  # the next target
    why: str = ""  # the reason, if the target is missed

    def good(self, ratio: float) -> bool:
        return ratio <= self.target if self.lower_is_better else ratio >= self.target


HOST = "Two programs of one host"
WIRE = "Over UDP, one veth pair, every ICRC checked"
INSTRUMENTS = "Two programs of one host, under dapple-run's options"
GUEST = "Over UDP in one guest, beside the kernel's rdma_rxe"
LIBRARIES = "The libraries on the software device, above raw verbs"
OTHERS = "Connections and sync calls"

BARE_UDP = "bare UDP sockets, the same two packets"

SHM = ["-p", "shm", "-e", "rdm"]
TCP = ["-p", "tcp", "-e", "msg"]
CMA = ["-x", "cma", "-D", "zcopy"]

WHY_GUARD = ("Each copy of dapple's also touches a word of the peer's guard page, which keeps it from another program that has got the same "
             "process number. UCT's copies have no such check.")
WHY_SAME_COPY = "In both the kernel copies the bytes once, so other load on the machine decides."
WHY_RATE = ("The instructions of both ends decide: a delay in either lowers the rate. UCX and its benchmark execute about 900 for a message in "
            "all. perftest alone executes 300. dapple executes 620 more for a Send and 730 for a receive (in lists 520 and 740), because "
            "it checks keys, bounds and states each time, and each message passes through a send queue, a receive queue and completion "
            "queues. On an Intel Xeon dapple met the target (bench/README.md).")
WHY_UDP = "Bare UDP sockets, which compute and check nothing, hardly meet the target themselves."
WHY_GUEST = "Here the guest's processor is emulated. Bare UDP sockets miss the target of the latency there, too."
WHY_CHECK = ("Without the check the posting program copies the bytes itself. Under the check they are copied at the post, sent as packets, and "
             "compared, because the check must see each access.")
WHY_SHORT_SYNC = ("A call takes 2 to 4 ns beside the instructions, which take as long as libpmem's: it checks the region, and its ranges lie "
                  "in memory.")
WHY_LONG_SYNC = "Both execute the same instructions for the same lines, so other load on the machine decides."


def size_name(size: int) -> str:
    for unit, name in ((MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} bytes"


def host_latency() -> list[Row]:
    return [
        Row("send_lat_8", HOST, "ib_send_lat, 8 bytes, average", "libfabric shm", "us", 1.0,
            lambda stand: stand.device.latency(stand.host, "ib_send_lat", 8, stand.some(100000))[1],
            lambda stand: fi_pingpong(stand.host, SHM, 8, stand.some(100000))[0], limit="pingpong_us", wish=0.6,
            beside=("UCT posix am_lat, p50", lambda stand: uct_latency(
                stand.host, ["-t", "am_lat", "-x", "posix", "-D", "short"], 8, stand.some(100000)))),
        Row("write_lat_8", HOST, "ib_write_lat, 8 bytes, p50", "UCT cma put_lat zcopy", "us", 1.0,
            lambda stand: stand.device.latency(stand.host, "ib_write_lat", 8, stand.some(100000))[0],
            lambda stand: uct_latency(stand.host, ["-t", "put_lat", *CMA], 8, stand.some(100000)), best=False, limit="pingpong_us"),
    ]


def host_bandwidth(size: int, messages: int) -> list[Row]:
    def write(stand: Stand) -> float:
        return stand.device.bandwidth(stand.host, ["ib_write_bw", "-t", "64"], size, stand.some(messages))[0]

    def put(stand: Stand) -> float:
        return ucx_bandwidth(stand.host, ["-t", "put_bw", *CMA, "-d", "memory"], size, stand.some(messages))[0]

    def send(stand: Stand) -> float:
        return stand.device.bandwidth(stand.host, ["ib_send_bw"], size, stand.some(messages))[0]

    def tag(stand: Stand) -> float:
        return ucx_bandwidth(stand.host, ["-t", "tag_bw"], size, stand.some(messages), "posix,cma")[0]

    return [
        Row(f"write_bw_{size}", HOST, f"ib_write_bw -t 64, {size_name(size)}", "UCT cma put_bw zcopy", "GB/s", 1.0, write, put,
            lower_is_better=False, limit=f"kernel_copy_{size}", why=WHY_GUARD),
        Row(f"send_bw_{size}", HOST, f"ib_send_bw, {size_name(size)}", "UCP tag_bw over posix, cma", "GB/s", 1.0, send, tag,
            lower_is_better=False, limit=f"kernel_copy_{size}", why=WHY_SAME_COPY),
    ]


def message_rate() -> list[Row]:
    def rate(*options: str) -> Callable[[Stand], float]:
        return lambda stand: stand.device.bandwidth(stand.host, ["ib_send_bw", *options], 8, stand.some(400000))[1]

    def tags(stand: Stand) -> float:
        return ucx_bandwidth(stand.host, ["-t", "tag_bw"], 8, stand.some(1000000), "posix")[1]

    return [
        Row("message_rate_8", HOST, "ib_send_bw, 8 bytes: messages", "UCP tag_bw over posix", "M/s", 1.0, rate(), tags,
            lower_is_better=False, why=WHY_RATE),
        Row("message_rate_8_lists", HOST, "ib_send_bw, 8 bytes: messages, in lists of 16", "UCP tag_bw over posix", "M/s", 1.0,
            rate("-l", "16", "--recv_post_list", "16"), tags, lower_is_better=False, why=WHY_RATE),
    ]


def wire() -> list[Row]:
    return [
        Row("udp_lat_8", WIRE, "UDP: ib_send_lat, 8 bytes, average", "libfabric tcp", "us", 0.8,
            lambda stand: stand.device.latency(stand.wire, "ib_send_lat", 8, stand.some(20000))[1],
            lambda stand: fi_pingpong(stand.wire, TCP, 8, stand.some(20000))[0], limit="pingpong_us",
            beside=(BARE_UDP, lambda stand: udp_pingpong(stand.build, stand.wire, stand.some(20000))), why=WHY_UDP),
        Row(f"udp_bw_{MIB}", WIRE, "UDP: ib_send_lat, 1 MiB there and back: bandwidth", "libfabric tcp", "GB/s", 0.7,
            lambda stand: MIB / stand.device.latency(stand.wire, "ib_send_lat", MIB, stand.some(400))[1] / 1e3,
            lambda stand: fi_pingpong(stand.wire, TCP, MIB, stand.some(400))[1], lower_is_better=False, limit=f"memcpy_{MIB}"),
    ]


def instruments() -> list[Row]:
    def latency(*options: str) -> Measure:
        return lambda stand: stand.device.under(*options).latency(stand.host, "ib_send_lat", 8, stand.some(100000))[0]

    def bandwidth(*options: str) -> Measure:
        return lambda stand: stand.device.under(*options).bandwidth(stand.host, ["ib_write_bw"], 64 * KIB, stand.some(20000))[0]

    return [
        Row("check_lat_8", INSTRUMENTS, "--check: ib_send_lat, 8 bytes, typical", "without", "us", 10.0, latency("--check"), latency(),
            best=False),
        Row(f"check_bw_{64 * KIB}", INSTRUMENTS, "--check: ib_write_bw, 64 KiB", "without", "GB/s", 0.25, bandwidth("--check"), bandwidth(),
            lower_is_better=False, best=False, why=WHY_CHECK),
        Row("explain_lat_8", INSTRUMENTS, "--explain: ib_send_lat, 8 bytes, typical", "without", "us", 1.05, latency("--explain"), latency(),
            best=False),
        Row(f"explain_bw_{64 * KIB}", INSTRUMENTS, "--explain: ib_write_bw, 64 KiB", "without", "GB/s", 0.95, bandwidth("--explain"),
            bandwidth(), lower_is_better=False, best=False),
    ]


def guest() -> list[Row]:
    return [
        Row("guest_lat", GUEST, "in a guest: ib_send_lat, 8 bytes, typical", "rdma_rxe", "us", 0.5, None, None, best=False,
            beside=(BARE_UDP, None), why=WHY_GUEST),
        Row("guest_bw", GUEST, "in a guest: ib_write_bw, 64 KiB", "rdma_rxe", "GB/s", 2.0, None, None, lower_is_better=False, best=False,
            why=WHY_GUEST),
    ]


def dat(row: str, title: str) -> Row:
    return Row(f"dat_{row}", LIBRARIES, f"uDAPL: dat_ep_post and dequeue, {title}", "libdapl2", "ns", 0.5,
               lambda stand: stand.dat_ns(row, original=False), lambda stand: stand.dat_ns(row, original=True),
               raw=lambda stand: stand.verbs_ns(row), best=False)


def libraries() -> list[Row]:
    return [
        dat("write", "RDMA Write"), dat("send", "Send"), dat("receive", "Receive"),
        Row("rpma_write", LIBRARIES, "librpma: rpma_write and its completion", "librpma 1.2.0", "ns", 0.7,
            lambda stand: stand.rpma_ns("write", original=False), lambda stand: stand.rpma_ns("write", original=True),
            raw=lambda stand: stand.verbs_ns("write"), best=False),
    ]


def sync(size: int) -> Row:
    key = f"{size} dirty mfence"
    return Row(f"sync_{size}", OTHERS, f"sync of {size_name(size)}, changed lines, mfence", "libpmem", "GB/s", 1.0,
               lambda stand: stand.sync(key)[0], lambda stand: stand.sync(key)[1], lower_is_better=False, best=False,
               beside=("the instructions alone", lambda stand: stand.sync(key)[2]),
               why=WHY_SHORT_SYNC if size < 4 * KIB else WHY_LONG_SYNC)


def others() -> list[Row]:
    return [
        Row("connections", OTHERS, "connections made and ended, uDAPL", "libdapl2", "in a second", 1.5,
            lambda stand: stand.connections(original=False), lambda stand: stand.connections(original=True), lower_is_better=False),
        *(sync(size) for size in (64, KIB, 64 * KIB, MIB, 64 * MIB)),
    ]


ROWS = [*host_latency(), *host_bandwidth(64 * KIB, 20000), *host_bandwidth(MIB, 2000), *message_rate(), *instruments(), *wire(), *guest(),
        *libraries(), *others()]
