# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# median(OF): the median of the numbers in all[OF]. Sets low[OF] and high[OF], too.
function median(of,    n, values, i, j, swap) {
  n = split(all[of], values, " ")
  for (i = 1; i <= n; i++)
    for (j = i + 1; j <= n; j++)
      if (values[j] + 0 < values[i] + 0) { swap = values[i]; values[i] = values[j]; values[j] = swap }
  low[of] = values[1]; high[of] = values[n]
  return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2
}
