// A peer in Java: acquires and releases locks from many threads, and prints what it counted.
//
//   java Peer KIND HOST:PORT THREADS own|same MODE HOLD_MS NAME COUNT
//
// KIND: redisson, redisson-fenced or curator. COUNT: a file of 8 bytes that every mutex grant reads
// and increments before its release, so that a step is lost if two are ever inside; or -. Prints
// "ready"; then every line "WARM_MS RUN_MS" starts a round, which prints one line of JSON: grants
// by thread and the histogram of waits as [up to so many microseconds, count], both without the
// warm-up; all pairs, and how many of them were counted in the file. Ends with its input.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

public class Peer {
  // One lock of one thread.
  interface Lock {
    void take() throws Exception;

    void giveBack() throws Exception;
  }

  interface Locks {
    Lock make(String name, String mode) throws Exception;
  }

  private static final int FINE = 7; // a part in 128

  static final class Histogram {
    final long[] cells = new long[4480];
    long max = 0;

    void record(long span) {
      final long length = Math.max(0, Math.min(span, (1L << 41) - 1));
      final int width = 64 - Long.numberOfLeadingZeros(length);
      final int coarse = Math.max(0, width - FINE - 1);
      ++cells[(coarse << FINE) + (int) (length >> coarse)];
      max = Math.max(max, span);
    }

    static double top(int cell) {
      final int coarse = Math.max(cell >> FINE, 1) - 1;
      return (((cell - ((long) coarse << FINE) + 1) << coarse) - 1) / 1e3;
    }
  }

  // The locks of one thread.
  static final class Place {
    final Lock write;
    final Lock read;

    Place(Lock write, Lock read) {
      this.write = write;
      this.read = read;
    }
  }

  static final class Worker extends Thread {
    static int reads;
    static long hold;
    static ByteBuffer count; // null: none
    static volatile long from;
    static volatile long end;
    final Histogram waits = new Histogram();
    long grants = 0;
    long pairs = 0;
    long counted = 0;
    final Place place;

    Worker(Place place) {
      this.place = place;
    }

    @Override
    public void run() {
      try {
        for (long asked = System.nanoTime(); asked < end; asked = System.nanoTime()) {
          final boolean reading = ThreadLocalRandom.current().nextInt(100) < reads;
          final boolean counting = count != null && !reading;
          final Lock lock = reading ? place.read : place.write;
          lock.take();
          final long granted = System.nanoTime();
          final long before = counting ? count.getLong(0) : 0;
          if (hold > 0) Thread.sleep(hold);
          if (counting) {
            count.putLong(0, before + 1);
            ++counted;
          }
          lock.giveBack();
          ++pairs;
          final long done = System.nanoTime();
          if (done >= from && done <= end) ++grants;
          if (asked >= from) waits.record(granted - asked);
        }
      } catch (Exception problem) {
        problem.printStackTrace();
        System.exit(1);
      }
    }
  }

  // By name: the libraries are fetched individually, and one may be missing.
  private static Locks locks(String kind, String address) throws Exception {
    final String type = kind.equals("curator") ? "CuratorLocks" : "RedissonLocks";
    return (Locks) Class.forName(type).getDeclaredConstructor(String.class, String.class)
        .newInstance(kind, address);
  }

  public static void main(String[] words) throws Exception {
    final Locks locks = locks(words[0], words[1]);
    final String mode = words[4];
    Worker.reads = mode.startsWith("rw:") ? Integer.parseInt(mode.substring(3)) : 0;
    Worker.hold = Long.parseLong(words[5]);
    if (!words[7].equals("-")) {
      try (FileChannel file = FileChannel.open(
          Path.of(words[7]), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
        Worker.count = file.map(FileChannel.MapMode.READ_WRITE, 0, 8).order(ByteOrder.LITTLE_ENDIAN);
      }
    }
    final List<Place> places = new ArrayList<>();
    for (int i = 0; i < Integer.parseInt(words[2]); ++i) {
      final String name = words[6] + (words[3].equals("own") ? "-" + i : "");
      final Lock write = locks.make(name, Worker.reads > 0 ? "write" : mode);
      places.add(new Place(write, Worker.reads > 0 ? locks.make(name, "read") : write));
    }
    System.out.println("ready");
    final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      final String[] times = line.trim().split(" ");
      Worker.from = System.nanoTime() + Long.parseLong(times[0]) * 1_000_000;
      Worker.end = Worker.from + Long.parseLong(times[1]) * 1_000_000;
      final List<Worker> workers = new ArrayList<>();
      for (final Place each : places) workers.add(new Worker(each));
      for (final Worker each : workers) each.start();
      for (final Worker each : workers) each.join();
      print(workers);
    }
    System.exit(0);
  }

  private static void print(List<Worker> workers) {
    final Histogram all = new Histogram();
    final StringBuilder grants = new StringBuilder();
    long pairs = 0;
    long counted = 0;
    for (final Worker each : workers) {
      for (int i = 0; i < all.cells.length; ++i) all.cells[i] += each.waits.cells[i];
      all.max = Math.max(all.max, each.waits.max);
      grants.append(grants.length() == 0 ? "" : ",").append(each.grants);
      pairs += each.pairs;
      counted += each.counted;
    }
    final StringBuilder cells = new StringBuilder();
    for (int i = 0; i < all.cells.length; ++i) {
      if (all.cells[i] == 0) continue;
      cells.append(cells.length() == 0 ? "" : ",");
      cells.append("[").append(Histogram.top(i)).append(",").append(all.cells[i]).append("]");
    }
    System.out.println(
        "{\"grants\":[" + grants + "],\"pairs\":" + pairs + ",\"counted\":" + counted
            + ",\"max_us\":" + all.max / 1e3 + ",\"histogram\":[" + cells + "]}");
  }
}
