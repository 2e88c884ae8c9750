# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Broadcom BCM57508 with one port of 100 Gb/s, as the bnxt_re driver shows it. It has no multicast.

name = bnxt_re%d
fw_ver = 226.0.145.0
hca_type = Broadcom NetXtreme-C/E RoCE Driver
node_desc = Broadcom NetXtreme-C/E RoCE Driver
vendor_id = 0x14e4
vendor_part_id = 5968
hw_ver = 0x11
gid_twins = yes
rate = 100

pci = 0000:41:00.0
driver = bnxt_en
pci_class = 0x020000
pci_vendor = 0x14e4
pci_device = 0x1750
pci_subsystem_vendor = 0x14e4
pci_subsystem_device = 0x2100
pci_revision = 0x11
pci_link_speed = 16
pci_link_width = 16
numa = 0

max_mr_size = 0x8000000000
page_size_cap = 0x7ffff000
device_cap_flags = 0x01225d81
max_qp = 65537
max_qp_wr = 65407
max_sge = 6
max_sge_rd = 6
max_inline = 96
max_msg_sz = 0x40000000
too_long = completes
max_cq = 65536
max_cqe = 1048575
num_comp_vectors = 8
resize_cq = yes
max_mr = 262144
max_pd = 65536
max_mw = 262144
memory_windows = yes
max_ah = 131072
max_srq = 65536
max_srq_wr = 65535
max_srq_sge = 6
srq = yes
atomics = global
flush = no
time_stamps = no
on_demand_paging = no
device_memory = no
dma_handles = no
completion_counters = no
tag_matching = no
max_qp_rd_atom = 126
max_qp_init_rd_atom = 126
max_res_rd_atom = 0
max_mcast_grp = 0
max_mcast_qp_attach = 0
max_total_mcast_qp_attach = 0
multicast = no
local_ca_ack_delay = 16
