# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# NVIDIA ConnectX-5 with one port of 100 Gb/s, as the mlx5 driver shows it.

name = mlx5_%d
fw_ver = 16.35.3502
hca_type = MT4119
board_id = MT_0000000008
node_desc = MT4119 ConnectX5   Mellanox Technologies
vendor_id = 0x02c9
vendor_part_id = 4119
hw_ver = 0
gid_twins = yes
rate = 100

pci = 0000:17:00.0
driver = mlx5_core
pci_class = 0x020000
pci_vendor = 0x15b3
pci_device = 0x1017
pci_subsystem_vendor = 0x15b3
pci_subsystem_device = 0x0008
pci_link_speed = 8
pci_link_width = 16
numa = 0

max_mr_size = 0xffffffffffffffff
page_size_cap = 0xfffffffffffff000
device_cap_flags = 0xed721c36
max_qp = 262144
max_qp_wr = 32768
max_sge = 30
max_sge_rd = 30
# Of a reliable connection: 1,024 bytes of a work request, less its headers.
max_inline = 828
max_msg_sz = 0x40000000
too_long = completes
max_cq = 16777216
max_cqe = 4194303
num_comp_vectors = 63
resize_cq = yes
max_mr = 16777216
max_pd = 16777216
max_mw = 16777216
memory_windows = yes
max_ah = 2147483647
max_srq = 8388608
max_srq_wr = 32767
max_srq_sge = 31
srq = yes
atomics = hca
flush = no
time_stamps = yes
on_demand_paging = yes
device_memory = yes
dma_handles = no
completion_counters = no
tag_matching = no
max_qp_rd_atom = 16
max_qp_init_rd_atom = 16
max_res_rd_atom = 4194304
max_mcast_grp = 2097152
max_mcast_qp_attach = 240
max_total_mcast_qp_attach = 503316480
multicast = yes
local_ca_ack_delay = 16
