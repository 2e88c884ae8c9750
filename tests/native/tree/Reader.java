// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// java Reader.java FOLDER: prints what is below a folder, as reader.c does.
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

public class Reader {
  static String firstLine(Path path) {
    try {
      List<String> lines = Files.readAllLines(path);
      return lines.isEmpty() ? "" : lines.get(0);
    } catch (IOException exception) {
      return exception.getMessage();
    }
  }

  public static void main(String[] words) throws IOException {
    Path top = Path.of(words[0]);
    try (Stream<Path> paths = Files.walk(top)) {
      for (Path path : (Iterable<Path>) paths.filter(each -> !each.equals(top))::iterator) {
        Path name = top.relativize(path);
        if (Files.isSymbolicLink(path)) {
          System.out.println("l " + name + " " + Files.readSymbolicLink(path));
        } else if (Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
          System.out.println("d " + name);
        } else {
          System.out.println("f " + name + " " + firstLine(path));
        }
      }
    }
    Path whole = top.resolve("subsystem").toRealPath();
    if (!whole.toString().equals("/sys/class/infiniband")) System.out.println("toRealPath: " + whole);
  }
}
