/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * The bytes that travel: a pseudo-random sequence for each seed, so that the check detects a shifted, stale or repeated
 * piece.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

void pattern_fill(unsigned char* at, size_t length, uint64_t seed);

/* Changes every byte. */
void pattern_invert(unsigned char* at, size_t length);

/*
 * The index of the first byte that differs from the pattern (from the inverted pattern if INVERTED), or LENGTH if none
 * does.
 */
size_t pattern_difference(const unsigned char* at, size_t length, uint64_t seed, int inverted);

/* Ends the program with a line if a byte of the range, or of one of the guards around it, is wrong. */
void pattern_must_match(const unsigned char* at, size_t length, uint64_t seed, int inverted, const char* what);
