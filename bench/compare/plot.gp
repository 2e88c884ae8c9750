# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# gnuplot -e "data='FILE'; out='FILE'; rows=N" plot.gp: a bar for each line TITLE GAIN of the data, from the target, 1, to
# its gain. Bars to the right are better than the target.
set terminal svg size 900, 60 + 26 * rows dynamic background rgb 'white' font 'sans-serif,12' noenhanced
set output out
set logscale x 2
set xlabel 'times better than the target (1: as the target demands)'
set xrange [0.125:16]
set yrange [rows - 0.5:-0.5]
set grid xtics
unset key
set lmargin 48
set tics nomirror
set border 3
set style fill solid
set arrow from 1, graph 0 to 1, graph 1 nohead lw 2 lc rgb '#444444' front
clip(x) = x < 0.125 ? 0.125 : x > 16 ? 16 : x
plot data using (1):0:(1):(clip($2)):($0 - 0.35):($0 + 0.35):($2 >= 1 ? 0x2f7f4f : 0xb04030):ytic(1) with boxxyerror lc rgb variable
