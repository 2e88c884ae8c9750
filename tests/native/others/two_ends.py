# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# two_ends.py own | server ADDRESS | client ADDRESS: uses the software device through pyverbs: two queue pairs of one
# process, of each kind; or a connection by rdma_cm.
import sys
import time

import pyverbs.cm_enums as ce
import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context, get_device_list
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE = 4096
FIRST_ADDRESS = 1  # of the GIDs, after the link-local one
GRH = 40
QKEY = 0x1111


def completion(cq):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        count, completions = cq.poll()
        if count:
            assert completions[0].status == e.IBV_WC_SUCCESS, completions[0]
            return completions[0]
    raise TimeoutError("no completion")


class End:
    def __init__(self, context, kind):
        self.kind = kind
        self.pd = PD(context)
        self.channel = CompChannel(context)
        self.cq = CQ(context, 16, channel=self.channel)
        self.qp = QP(self.pd, QPInitAttr(kind, scq=self.cq, rcq=self.cq, cap=QPCap(8, 8, 1, 1)))
        access = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
        self.mr = MR(self.pd, SIZE, access)
        self.route = GlobalRoute(context.query_gid(1, FIRST_ADDRESS), sgid_index=FIRST_ADDRESS)

    def connect(self, peer):
        address = AHAttr(port_num=1, is_global=1, gr=self.route)
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
        attr.qkey = QKEY
        attr.dest_qp_num = peer.qp.qp_num
        attr.path_mtu = e.IBV_MTU_1024
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
        attr.rq_psn = attr.sq_psn = 77
        attr.ah_attr = address
        if self.kind == e.IBV_QPT_UD:
            self.qp.to_rts(attr)
            self.ah = AH(self.pd, attr=address)
        else:
            self.qp.to_rts(attr)

    def receive(self):
        self.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(self.mr.buf, SIZE, self.mr.lkey)]))

    def send(self, data, opcode=e.IBV_WR_SEND, peer=None):
        self.mr.write(data, len(data))
        request = SendWR(opcode=opcode, num_sge=1, sg=[SGE(self.mr.buf, len(data), self.mr.lkey)])
        if self.kind == e.IBV_QPT_UD:
            request.set_wr_ud(self.ah, peer.qp.qp_num, QKEY)
        elif opcode != e.IBV_WR_SEND:
            request.set_wr_rdma(peer.mr.rkey, peer.mr.buf)
        self.qp.post_send(request)


def own():
    device = get_device_list()[0].name.decode()
    assert device.startswith("dapple"), device
    context = Context(name=device)
    assert context.query_port(1).state == e.IBV_PORT_ACTIVE
    assert context.query_device().max_qp > 0
    assert context.query_pkey(1, 0) == 0xFFFF
    assert context.query_gid_table(8)[0].gid_type == e.IBV_GID_TYPE_ROCE_V2
    for kind in (e.IBV_QPT_RC, e.IBV_QPT_UC, e.IBV_QPT_UD):
        a, b = End(context, kind), End(context, kind)
        a.connect(b)
        b.connect(a)
        b.cq.req_notify()
        b.receive()
        a.send(b"x" * 100, peer=b)
        completion(a.cq)
        b.channel.get_cq_event(b.cq)
        b.cq.ack_events(1)
        header = GRH if kind == e.IBV_QPT_UD else 0
        assert completion(b.cq).byte_len == header + 100
        assert b.mr.read(100, header) == b"x" * 100
        if kind != e.IBV_QPT_UD:
            a.send(b"w" * SIZE, e.IBV_WR_RDMA_WRITE, b)
            completion(a.cq)
        if kind == e.IBV_QPT_RC:
            assert b.mr.read(SIZE, 0) == b"w" * SIZE
            b.mr.write(b"r" * SIZE, SIZE)
            a.send(b" " * SIZE, e.IBV_WR_RDMA_READ, b)
            completion(a.cq)
            assert a.mr.read(SIZE, 0) == b"r" * SIZE
    try:
        MR(End(context, e.IBV_QPT_RC).pd, SIZE, e.IBV_ACCESS_REMOTE_WRITE)
        raise AssertionError("remote access without local access")
    except PyverbsRDMAError:
        pass


def connection(role, address):
    attr = QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(4, 4, 1, 1))
    if role == "server":
        where = AddrInfo(src=address, src_service="7471", port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE)
        listener = CMID(creator=where, qp_init_attr=attr)
        listener.listen()
        cmid = listener.get_request()
    else:
        where = AddrInfo(dst=address, dst_service="7471", port_space=ce.RDMA_PS_TCP)
        cmid = CMID(creator=where, qp_init_attr=attr)
    mr = cmid.reg_msgs(SIZE)
    cmid.post_recv(mr)
    cmid.accept() if role == "server" else cmid.connect()
    if role == "client":
        mr.write(b"question", 8)
        cmid.post_send(mr)
        assert cmid.get_send_comp().status == e.IBV_WC_SUCCESS
        assert cmid.get_recv_comp().status == e.IBV_WC_SUCCESS
        assert mr.read(6, 0) == b"answer"
        cmid.disconnect()
    else:
        assert cmid.get_recv_comp().status == e.IBV_WC_SUCCESS
        assert mr.read(8, 0) == b"question"
        mr.write(b"answer", 6)
        cmid.post_send(mr)
        assert cmid.get_send_comp().status == e.IBV_WC_SUCCESS


own() if sys.argv[1] == "own" else connection(*sys.argv[1:3])
print("all right")
