// The other side of scripts/interop: Redisson takes the same locks as holdfast does.
//
//   java RedissonPeer.java PORT KIND NAME ROUNDS FILE LOG
//
// KIND: lock, fenced, fair, spin, write, read, latch. In each round the lock is taken, the number in FILE is read and
// written one greater, and the lock is given back. The other side does the same: if both are ever inside, a number is
// lost. A reader only looks whether the number changes under it. LOG gets a line per round: when it began to wait, when
// it was granted and when it gave back, in ns since 1970. latch: sets latches NAME-0, NAME-1, ... and opens every
// second one, the others are opened by the other side.
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.redisson.Redisson;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class RedissonPeer {
  private static long now() {
    final Instant at = Instant.now();
    return at.getEpochSecond() * 1000000000L + at.getNano();
  }

  private static String number(Path file) throws Exception {
    return Files.readString(file).trim();
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

  public static void main(String[] words) throws Exception {
    final Config config = new Config();
    config.useSingleServer().setAddress("redis://127.0.0.1:" + words[0]).setConnectionMinimumIdleSize(1);
    final RedissonClient client = Redisson.create(config);
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
    final Lock lock;
    switch (kind) {
      case "lock": lock = client.getLock(name); break;
      case "fenced": lock = client.getFencedLock(name); break;
      case "fair": lock = client.getFairLock(name); break;
      case "spin": lock = client.getSpinLock(name); break;
      case "write": lock = client.getReadWriteLock(name).writeLock(); break;
      case "read": lock = client.getReadWriteLock(name).readLock(); break;
      default: throw new IllegalArgumentException(kind);
    }
    System.out.println("ready");
    Long last = 0L;
    for (int i = 0; i < rounds; ++i) {
      final long began = now();
      if (lock instanceof RFencedLock) {
        final Long token = ((RFencedLock) lock).tryLockAndGetToken(120, TimeUnit.SECONDS);
        if (token == null || token <= last) throw new IllegalStateException("token " + token + " after " + last);
        last = token;
      } else if (!lock.tryLock(120, TimeUnit.SECONDS)) {
        throw new IllegalStateException("no lock in two minutes");
      }
      final long granted = now();
      final String before = number(file);
      Thread.sleep(1);
      if (!kind.equals("read")) {
        Files.writeString(file, Long.toString(Long.parseLong(before) + 1));
      } else if (!number(file).equals(before)) {
        throw new IllegalStateException("changed under a reader");
      }
      log.println(began + " " + granted + " " + now());
      lock.unlock();
      Thread.sleep(1 + i % 3);
    }
    log.close();
    client.shutdown();
  }
}
