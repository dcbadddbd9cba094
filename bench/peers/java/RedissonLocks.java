// Redisson with its own defaults: RLock or RFencedLock, its fair lock, its read-write lock, its semaphore.
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

final class RedissonLocks implements Peer.Locks {
  private final RedissonClient client;
  private final boolean fenced;

  RedissonLocks(String kind, String host) {
    final Config config = new Config();
    config.useSingleServer().setAddress("redis://" + host);
    client = Redisson.create(config);
    fenced = kind.equals("redisson-fenced");
  }

  @Override
  public Peer.Lock make(String name, String mode) {
    if (mode.startsWith("semaphore:")) {
      return permit(client.getSemaphore(name), Integer.parseInt(mode.substring(10)));
    }
    switch (mode) {
      case "fair":
        return plain(client.getFairLock(name));
      case "read":
        return plain(client.getReadWriteLock(name).readLock());
      case "write":
        return plain(client.getReadWriteLock(name).writeLock());
      default:
        return fenced ? withToken(client.getFencedLock(name)) : plain(client.getLock(name));
    }
  }

  private static Peer.Lock plain(RLock lock) {
    return new Peer.Lock() {
      @Override
      public void take() {
        lock.lock();
      }

      @Override
      public void giveBack() {
        lock.unlock();
      }
    };
  }

  private static Peer.Lock withToken(RFencedLock lock) {
    return new Peer.Lock() {
      private long last = 0;

      @Override
      public void take() {
        final long token = lock.lockAndGetToken();
        if (token <= last) throw new IllegalStateException("a token that does not grow");
        last = token;
      }

      @Override
      public void giveBack() {
        lock.unlock();
      }
    };
  }

  private static Peer.Lock permit(RSemaphore semaphore, int permits) {
    semaphore.trySetPermits(permits);
    return new Peer.Lock() {
      @Override
      public void take() throws Exception {
        semaphore.acquire();
      }

      @Override
      public void giveBack() {
        semaphore.release();
      }
    };
  }
}
