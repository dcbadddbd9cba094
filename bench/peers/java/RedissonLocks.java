// Redisson with its own defaults: RLock, its fair lock, its read-write lock, its semaphore.
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

final class RedissonLocks implements Peer.Locks {
  private final RedissonClient client;

  RedissonLocks(String host) {
    final Config config = new Config();
    config.useSingleServer().setAddress("redis://" + host);
    client = Redisson.create(config);
  }

  @Override
  public Peer.Lock make(String name, String mode) {
    if (mode.startsWith("semaphore:")) {
      final RSemaphore semaphore = client.getSemaphore(name);
      semaphore.trySetPermits(Integer.parseInt(mode.substring(10)));
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
    final RLock lock;
    switch (mode) {
      case "fair":
        lock = client.getFairLock(name);
        break;
      case "read":
        lock = client.getReadWriteLock(name).readLock();
        break;
      case "write":
        lock = client.getReadWriteLock(name).writeLock();
        break;
      default:
        lock = client.getLock(name);
    }
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

  @Override
  public void close() {
    client.shutdown();
  }
}
