#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# reader.pl FOLDER: prints what is below a folder, as reader.c does.
use strict;
use warnings;

my $top = shift;

sub show {
  my ($path) = @_;
  my $name = substr($path, length($top) + 1);
  if (-l $path) {
    print "l $name ", readlink($path), "\n";
  } elsif (-d $path) {
    print "d $name\n";
    read_folder($path);
  } else {
    my ($file, $text, $size);
    $size = sysread($file, $text, 4096) if open($file, '<', $path);
    print "f $name ", defined $size ? (split(/\n/, $text, 2))[0] // '' : "$!", "\n";
  }
}

sub read_folder {
  my ($folder) = @_;
  opendir(my $list, $folder) or die "$folder: $!\n";
  show("$folder/$_") for grep { !/^\.\.?$/ } readdir($list);
}

read_folder($top);
