// The other side of the interop tests: Apache Curator takes the same locks as holdfast does.
//
//   java CuratorPeer.java HOSTS PATH KIND ROUNDS FILE [PAUSE_MS [LOG]]
//
// KIND: mutex, read, write, semaphore, one (InterProcessSemaphoreMutex), latch, selector. In each round the lock is
// taken, the number in FILE is read and written one greater, after a pause, and the lock is given back. The other side
// does the same: if both are ever inside, a number is lost. A reader only looks whether the number changes under it.
// LOG gets a line per round: when it began to wait, when it was granted and when it gave back, in ns since 1970.
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

public class CuratorPeer {
  private static Path file;
  private static long pause;
  private static PrintWriter log;
  private static long began;
  private static volatile Exception problem;

  private static long now() {
    final Instant at = Instant.now();
    return at.getEpochSecond() * 1000000000L + at.getNano();
  }

  // What the lock guards: a number that only one at a time may change.
  private static void count() throws Exception {
    final long granted = now();
    final long before = Long.parseLong(Files.readString(file).trim());
    if (pause > 0) Thread.sleep(pause);
    Files.writeString(file, Long.toString(before + 1));
    if (log != null) log.println(began + " " + granted + " " + now());
  }

  // It leads as long as the call lasts.
  private static void select(CuratorFramework client, String path) throws Exception {
    final CountDownLatch led = new CountDownLatch(1);
    final LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
      @Override
      public void takeLeadership(CuratorFramework unused) {
        try { count(); } catch (Exception failed) { problem = failed; }
        led.countDown();
      }
    });
    selector.setId("curator");
    selector.start();
    if (!led.await(60, TimeUnit.SECONDS)) throw new IllegalStateException("no leader");
    selector.close();
    if (problem != null) throw problem;
  }

  private static void look() throws Exception {
    final String before = Files.readString(file);
    if (pause > 0) Thread.sleep(pause);
    if (!Files.readString(file).equals(before)) throw new IllegalStateException("changed under a reader");
  }

  public static void main(String[] words) throws Exception {
    final CuratorFramework client =
        CuratorFrameworkFactory.newClient(words[0], 30000, 15000, new RetryOneTime(1000));
    client.start();
    final String path = words[1];
    final int rounds = Integer.parseInt(words[3]);
    file = Path.of(words[4]);
    pause = words.length > 5 ? Long.parseLong(words[5]) : 0;
    log = words.length > 6 ? new PrintWriter(words[6]) : null;
    final InterProcessMutex mutex = new InterProcessMutex(client, path);
    final InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
    final InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, 1);
    System.out.println("ready");
    for (int i = 0; i < rounds; ++i) {
      if (log != null) Thread.sleep(1 + i % 3);
      began = now();
      switch (words[2]) {
        case "mutex":
          if (!mutex.acquire(60, TimeUnit.SECONDS)) throw new IllegalStateException("no lock");
          try { count(); } finally { mutex.release(); }
          break;
        case "write":
          if (!both.writeLock().acquire(60, TimeUnit.SECONDS)) throw new IllegalStateException("no lock");
          try { count(); } finally { both.writeLock().release(); }
          break;
        case "read":
          if (!both.readLock().acquire(60, TimeUnit.SECONDS)) throw new IllegalStateException("no lock");
          try { look(); } finally { both.readLock().release(); }
          break;
        case "semaphore":
          final Lease lease = semaphore.acquire(60, TimeUnit.SECONDS);
          if (lease == null) throw new IllegalStateException("no permit");
          try { count(); } finally { semaphore.returnLease(lease); }
          break;
        case "latch":
          final LeaderLatch latch = new LeaderLatch(client, path, "curator");
          latch.start();
          if (!latch.await(60, TimeUnit.SECONDS)) throw new IllegalStateException("no leader");
          count();
          latch.close();
          break;
        case "one":
          final InterProcessSemaphoreMutex one = new InterProcessSemaphoreMutex(client, path);
          if (!one.acquire(60, TimeUnit.SECONDS)) throw new IllegalStateException("no lock");
          try { count(); } finally { one.release(); }
          break;
        case "selector":
          select(client, path);
          break;
        default:
          throw new IllegalArgumentException(words[2]);
      }
    }
    if (log != null) log.close();
    client.close();
  }
}
