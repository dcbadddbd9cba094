// A peer in Java: takes and gives back locks from many threads, and prints what it counted.
//
//   java Peer redisson|curator HOST:PORT THREADS own|same MODE HOLD_MS WARM_MS RUN_MS PREFIX
//
// Prints "ready", waits for a line, runs, prints one line of JSON: grants by thread and the
// histogram of waits as [up to so many microseconds, count].
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;

public class Peer {
  // One lock of one thread.
  interface Lock {
    void take() throws Exception;

    void giveBack() throws Exception;
  }

  interface Locks {
    Lock make(String name, String mode) throws Exception;

    void close();
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

  static final class Worker extends Thread {
    final Histogram waits = new Histogram();
    long grants = 0;
    final Lock read;
    final Lock write;
    final int reads;
    final long hold;
    final CountDownLatch go;
    static volatile long from;
    static volatile long end;

    Worker(Lock write, Lock read, int reads, long hold, CountDownLatch go) {
      this.write = write;
      this.read = read;
      this.reads = reads;
      this.hold = hold;
      this.go = go;
    }

    @Override
    public void run() {
      try {
        go.await();
        for (long asked = System.nanoTime(); asked < end; asked = System.nanoTime()) {
          final boolean reading = ThreadLocalRandom.current().nextInt(100) < reads;
          final Lock lock = reading ? read : write;
          lock.take();
          final long granted = System.nanoTime();
          if (hold > 0) Thread.sleep(hold);
          lock.giveBack();
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

  public static void main(String[] words) throws Exception {
    final Locks locks =
        words[0].equals("redisson") ? new RedissonLocks(words[1]) : new CuratorLocks(words[1]);
    final int count = Integer.parseInt(words[2]);
    final String mode = words[4];
    final int reads = mode.startsWith("rw:") ? Integer.parseInt(mode.substring(3)) : 0;
    final CountDownLatch go = new CountDownLatch(1);
    final List<Worker> workers = new ArrayList<>();
    for (int i = 0; i < count; ++i) {
      final String name = words[8] + (words[3].equals("own") ? "-" + i : "");
      final Lock write = locks.make(name, reads > 0 ? "write" : mode);
      final Lock read = reads > 0 ? locks.make(name, "read") : write;
      workers.add(new Worker(write, read, reads, Long.parseLong(words[5]), go));
    }
    for (final Worker each : workers) each.start();
    System.out.println("ready");
    System.in.read();
    final long start = System.nanoTime();
    Worker.from = start + Long.parseLong(words[6]) * 1_000_000;
    Worker.end = Worker.from + Long.parseLong(words[7]) * 1_000_000;
    go.countDown();
    for (final Worker each : workers) each.join();
    print(workers);
    locks.close();
    System.exit(0);
  }

  private static void print(List<Worker> workers) {
    final Histogram all = new Histogram();
    final StringBuilder grants = new StringBuilder();
    for (final Worker each : workers) {
      for (int i = 0; i < all.cells.length; ++i) all.cells[i] += each.waits.cells[i];
      all.max = Math.max(all.max, each.waits.max);
      grants.append(grants.length() == 0 ? "" : ",").append(each.grants);
    }
    final StringBuilder cells = new StringBuilder();
    for (int i = 0; i < all.cells.length; ++i) {
      if (all.cells[i] == 0) continue;
      cells.append(cells.length() == 0 ? "" : ",");
      cells.append("[").append(Histogram.top(i)).append(",").append(all.cells[i]).append("]");
    }
    System.out.println(
        "{\"grants\":[" + grants + "],\"max_us\":" + all.max / 1e3 + ",\"histogram\":[" + cells
            + "]}");
  }
}
