/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */

/* For a program without a dynamic loader. */
int main(void) {
  return 0;
}
