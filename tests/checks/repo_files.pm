# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# SPDX-FileCopyrightText: The dapple authors
#
# Common functions of the checks in this folder: the list of the project's files, and the report. It needs only Debian's
# perl-base.
package repo_files;
use strict;
use warnings;
use Exporter 'import';
our @EXPORT = qw(repo_files read_text complain finish);

my $complaints = 0;

# repo_files(ROOT): paths below ROOT, relative to it, sorted. Build trees and version control's hidden files are left
# out. It walks the folder instead of asking git, so that it works in an unpacked source archive as well as in a clone.
sub repo_files {
  my ($root) = @_;
  my @found;
  my @pending = ('');
  while (defined(my $folder = shift @pending)) {
    opendir(my $handle, "$root/$folder") or die "cannot list $root/$folder: $!\n";
    for my $name (sort readdir $handle) {
      next if $name =~ /^\.{1,2}$/ || $name =~ /^(?:\.git|\.cache|__pycache__)$/ || $name =~ /(?:~|\.swp)$/;
      my $path = $folder eq '' ? $name : "$folder/$name";
      next if $path eq 'build' || $path eq 'compile_commands.json';
      if (-l "$root/$path") { next }
      elsif (-d _) { push @pending, $path }
      else { push @found, $path }
    }
  }
  return sort @found;
}

# read_text(FILE): the whole file, or undef for one that is not text.
sub read_text {
  my ($file) = @_;
  open(my $handle, '<:raw', $file) or die "cannot read $file: $!\n";
  local $/;
  my $text = <$handle> // '';
  return $text =~ /\0/ ? undef : $text;
}

sub complain {
  my ($message) = @_;
  print STDERR "$message\n";
  $complaints++;
}

# finish(SUMMARY): ends the program; the exit code is 0 if nothing was reported.
sub finish {
  my ($summary) = @_;
  print $complaints ? "$complaints complaint(s)\n" : "$summary\n";
  exit($complaints ? 1 : 0);
}

1;
