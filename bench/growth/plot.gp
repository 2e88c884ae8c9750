# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Draws $cost, a block of counts and microseconds for each operation, and $memory, a name and bytes for each object.
# bench/growth/run writes both before this text, and the output's name.
set terminal svg size 1100,520 dynamic background rgb 'white' font 'sans-serif,12'
set linetype 5 linecolor rgb '#c44e52'
set multiplot
set border 3
set grid ytics linecolor rgb '#dddddd'
set xtics nomirror
set ytics nomirror

set origin 0,0
set size 0.68,1
set title "CPU time of an operation, by the number of objects" noenhanced
set logscale xy
set xrange [0.8:15000]
set yrange [1:10000]
set xlabel "objects"
set ylabel "us"
set key bottom outside center maxrows 3 noenhanced
plot for [i=0:5] $cost using 1:2 index i with linespoints linewidth 2 pointtype 7 pointsize 0.5 title columnheader(1)

set origin 0.68,0
set size 0.32,1
set title "Memory of one" noenhanced
unset logscale x
set xrange [-0.6:4.6]
set yrange [10:20000000]
unset xlabel
set ylabel "bytes"
set style fill solid 0.9 noborder
set boxwidth 0.7
set xtics rotate by -30 font ',10'
unset key
plot $memory using 2:xticlabels(1) with boxes linecolor rgb '#2a7ab0'
unset multiplot
