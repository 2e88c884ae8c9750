# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# gnuplot -e "table='TABLE.md'; out='FILE.svg'" plot.gp: draws the overhead above raw verbs, from the table that
# instructions/table prints.
set terminal svg size 960,520 dynamic background rgb 'white' font 'sans-serif,13'
set output out
set datafile separator '|'
set title "Instructions per event above raw verbs, in user space (rdma_rxe)" noenhanced
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.9 noborder
set boxwidth 0.95
set yrange [0:*]
set grid ytics linecolor rgb '#dddddd'
set border 3
set xtics nomirror rotate by -28 font ',11'
set ytics nomirror
set rmargin 12
set key top right
plot '<sed "/^| [^i]/!d; s/: post + dequeue//" '.table using 7:xticlabels(2) title "original" linecolor rgb '#b0b0b0', \
     '' using 6 title "dapple" linecolor rgb '#2a7ab0'
