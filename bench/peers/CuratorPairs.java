// What bench/zookeeper.cpp compares with: Curator's InterProcessMutex, acquired and released.
//
//   java CuratorPairs.java HOSTS PATH THREADS own|same WARM_UP_SECONDS SECONDS
//
// Prints how many pairs a second all threads together made after the warm-up.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public class CuratorPairs {
  private static volatile boolean done = false;

  public static void main(String[] words) throws Exception {
    final CuratorFramework client =
        CuratorFrameworkFactory.newClient(words[0], 30000, 15000, new RetryOneTime(1000));
    client.start();
    final AtomicLong pairs = new AtomicLong();
    final List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < Integer.parseInt(words[2]); ++i) {
      final String path = words[1] + (words[3].equals("own") ? "/c" + i : "/c");
      final Thread thread = new Thread(() -> {
        try {
          final InterProcessMutex lock = new InterProcessMutex(client, path);
          while (!done) {
            lock.acquire();
            lock.release();
            pairs.incrementAndGet();
          }
        } catch (Exception problem) {
          throw new RuntimeException(problem);
        }
      });
      thread.start();
      threads.add(thread);
    }
    Thread.sleep(1000L * Integer.parseInt(words[4]));
    final long begun = System.nanoTime();
    final long before = pairs.get();
    Thread.sleep(1000L * Integer.parseInt(words[5]));
    final double seconds = (System.nanoTime() - begun) / 1e9;
    System.out.println((pairs.get() - before) / seconds);
    done = true;
    for (final Thread each : threads) each.join();
    client.close();
  }
}
