// The other side of `make interop-redisson`: Redisson takes the same lock as holdfast does.
//
//   java RedissonPeer.java PORT NAME ROUNDS FILE
//
// In each round the lock is taken, the number in FILE is read and written one greater, and the lock is given
// back. The other side does the same: if both are ever inside, a number is lost. Prints "ready", and
// at the end the longest wait in ms.
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class RedissonPeer {
  public static void main(String[] words) throws Exception {
    final Config config = new Config();
    config.useSingleServer().setAddress("redis://127.0.0.1:" + words[0]).setConnectionMinimumIdleSize(1);
    final RedissonClient client = Redisson.create(config);
    final RFencedLock lock = client.getFencedLock(words[1]);
    final int rounds = Integer.parseInt(words[2]);
    final Path file = Path.of(words[3]);
    System.out.println("ready");
    long longest = 0;
    long last = 0;
    for (int i = 0; i < rounds; ++i) {
      final long began = System.nanoTime();
      final Long token = lock.tryLockAndGetToken(60, TimeUnit.SECONDS);
      if (token == null) throw new IllegalStateException("no lock in a minute");
      if (token <= last) throw new IllegalStateException("token " + token + " after " + last);
      last = token;
      longest = Math.max(longest, System.nanoTime() - began);
      Files.writeString(file, Long.toString(Long.parseLong(Files.readString(file).trim()) + 1));
      lock.unlock();
    }
    System.out.println(longest / 1000000);
    client.shutdown();
  }
}
