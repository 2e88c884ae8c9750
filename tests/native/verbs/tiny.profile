# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# A device whose limits a test reaches quickly. A pair of queue pairs of the tests still fits.
name = tiny-%d.x
fw_ver = 0.1
hca_type = TINY
board_id = T#1
node_desc = A tiny device
vendor_id = 0x123456
vendor_part_id = 7
hw_ver = 2
rate = 25
pci = 0001:f7:1f.7
driver = tiny
numa = 0, -1
max_mr_size = 65536
max_qp = 3
max_qp_wr = 64
max_send_sge = 2
max_recv_sge = 1
max_inline = 33
max_msg_sz = 8192
too_long = completes
max_cq = 3
max_cqe = 127
num_comp_vectors = 3
resize_cq = no
max_mr = 3
max_pd = 2
max_mw = 2
max_ah = 2
max_srq = 2
max_srq_wr = 9
max_srq_sge = 2
device_cap_flags = 0x01201000 # an SRQ keeps its size
atomics = none
flush = no
time_stamps = no
on_demand_paging = no
device_memory = no
dma_handles = no
completion_counters = no
tag_matching = no
multicast = no
max_qp_rd_atom = 5
max_qp_init_rd_atom = 4
