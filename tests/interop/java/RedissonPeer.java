// The other side of scripts/interop: Redisson takes the same locks as holdfast does.
//
//   java RedissonPeer.java ADDRESS KIND NAME ROUNDS FILE LOG
//
// ADDRESS: HOST:PORT, or HOST:PORT/cluster. KIND: lock, fenced, fair, spin, once, once-fair, write, read, permit, latch.
// In each round the lock is taken, the number in FILE is read and written one greater, and the lock is given back. The
// other side does the same: if both are ever inside, a number is lost. A reader only looks whether the number changes
// under it. LOG gets a line per round: when it began to wait, when it was granted and when it gave back, in ns since
// 1970. latch: sets latches NAME-0, NAME-1, ... and opens every second one, the others are opened by the other side.
// ROUNDS 0: four threads take it for 1 ms each, without a pause, until the process is ended.
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.redisson.Redisson;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class RedissonPeer {
  // Takes it; answers what gives it back.
  private interface Taking {
    Runnable take() throws Exception;
  }

  private static long now() {
    final Instant at = Instant.now();
    return at.getEpochSecond() * 1000000000L + at.getNano();
  }

  private static String number(Path file) throws Exception {
    return Files.readString(file).trim();
  }

  private static RedissonClient connect(String address) {
    final Config config = new Config();
    if (address.endsWith("/cluster")) {
      config.useClusterServers().addNodeAddress("redis://" + address.replace("/cluster", ""));
    } else {
      config.useSingleServer().setAddress("redis://" + address).setConnectionMinimumIdleSize(1);
    }
    return Redisson.create(config);
  }

  private static void latches(RedissonClient client, String name, int rounds, PrintWriter log)
      throws Exception {
    for (int i = 0; i < rounds; ++i) client.getCountDownLatch(name + "-" + i).trySetCount(1);
    System.out.println("ready");
    for (int i = 0; i < rounds; ++i) {
      final RCountDownLatch turn = client.getCountDownLatch(name + "-" + i);
      final long began = now();
      if (i % 2 == 0) {
        Thread.sleep(2);
        turn.countDown();
        log.println("open " + began + " " + now());
      } else {
        if (!turn.await(120, TimeUnit.SECONDS)) throw new IllegalStateException("not opened");
        log.println("wait " + began + " " + now());
      }
    }
  }

  // Since 4.4: by name, so that older versions can be run, too.
  private static Lock newer(RedissonClient client, String method, String name) throws Exception {
    return (Lock) RedissonClient.class.getMethod(method, String.class).invoke(client, name);
  }

  private static Lock lock(RedissonClient client, String kind, String name) throws Exception {
    switch (kind) {
      case "lock": return client.getLock(name);
      case "fenced": return client.getFencedLock(name);
      case "fair": return client.getFairLock(name);
      case "spin": return client.getSpinLock(name);
      case "once": return newer(client, "getNonReentrantLock", name);
      case "once-fair": return newer(client, "getNonReentrantFairLock", name);
      case "write": return client.getReadWriteLock(name).writeLock();
      case "read": return client.getReadWriteLock(name).readLock();
      default: throw new IllegalArgumentException(kind);
    }
  }

  private static Taking taking(RedissonClient client, String kind, String name) throws Exception {
    if (kind.equals("permit")) {
      final RPermitExpirableSemaphore one = client.getPermitExpirableSemaphore(name);
      one.trySetPermits(1);
      return () -> {
        final String id = one.tryAcquire(120, 60, TimeUnit.SECONDS);
        if (id == null) throw new IllegalStateException("no permit in two minutes");
        return () -> one.release(id);
      };
    }
    final Lock lock = lock(client, kind, name);
    final long[] last = {0};
    return () -> {
      if (lock instanceof RFencedLock) {
        final Long token = ((RFencedLock) lock).tryLockAndGetToken(120, TimeUnit.SECONDS);
        if (token == null || token <= last[0]) throw new IllegalStateException("token " + token + " after " + last[0]);
        last[0] = token;
      } else if (kind.contains("fair")) {
        lock.lock(); // its tryLock() without a lease time keeps its place for so many ms, whatever the unit
      } else if (!lock.tryLock(120, TimeUnit.SECONDS)) {
        throw new IllegalStateException("no lock in two minutes");
      }
      return lock::unlock;
    };
  }

  private static void hammer(Taking taking) {
    for (int i = 0; i < 4; ++i) {
      new Thread(() -> {
        try {
          while (true) {
            final Runnable back = taking.take();
            Thread.sleep(1);
            back.run();
          }
        } catch (Exception problem) {
          problem.printStackTrace();
          System.exit(1);
        }
      }).start();
    }
  }

  public static void main(String[] words) throws Exception {
    final RedissonClient client = connect(words[0]);
    final String kind = words[1];
    final String name = words[2];
    final int rounds = Integer.parseInt(words[3]);
    final Path file = Path.of(words[4]);
    final PrintWriter log = new PrintWriter(words[5]);
    if (kind.equals("latch")) {
      latches(client, name, rounds, log);
      log.close();
      client.shutdown();
      return;
    }
    final Taking taking = taking(client, kind, name);
    System.out.println("ready");
    if (rounds == 0) {
      hammer(taking);
      return;
    }
    for (int i = 0; i < rounds; ++i) {
      final long began = now();
      final Runnable back = taking.take();
      final long granted = now();
      final String before = number(file);
      Thread.sleep(1);
      if (!kind.equals("read")) {
        Files.writeString(file, Long.toString(Long.parseLong(before) + 1));
      } else if (!number(file).equals(before)) {
        throw new IllegalStateException("changed under a reader");
      }
      log.println(began + " " + granted + " " + now());
      back.run();
      Thread.sleep(1 + i % 3);
    }
    log.close();
    client.shutdown();
  }
}
