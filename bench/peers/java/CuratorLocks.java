// Curator with its own defaults: InterProcessMutex, InterProcessReadWriteLock, InterProcessSemaphoreV2.
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

final class CuratorLocks implements Peer.Locks {
  private final CuratorFramework client;

  CuratorLocks(String kind, String host) throws Exception {
    client = CuratorFrameworkFactory.newClient(host, 30000, 15000, new RetryOneTime(1000));
    client.start();
    client.blockUntilConnected();
  }

  @Override
  public Peer.Lock make(String name, String mode) {
    final String path = "/" + name.replace('/', '-');
    if (mode.startsWith("semaphore:")) {
      return permit(
          new InterProcessSemaphoreV2(client, path, Integer.parseInt(mode.substring(10))));
    }
    switch (mode) {
      case "read":
        return plain(new InterProcessReadWriteLock(client, path).readLock());
      case "write":
        return plain(new InterProcessReadWriteLock(client, path).writeLock());
      default:
        return plain(new InterProcessMutex(client, path));
    }
  }

  private static Peer.Lock plain(InterProcessMutex lock) {
    return new Peer.Lock() {
      @Override
      public void take() throws Exception {
        lock.acquire();
      }

      @Override
      public void giveBack() throws Exception {
        lock.release();
      }
    };
  }

  private static Peer.Lock permit(InterProcessSemaphoreV2 semaphore) {
    return new Peer.Lock() {
      private Lease held;

      @Override
      public void take() throws Exception {
        held = semaphore.acquire();
      }

      @Override
      public void giveBack() {
        semaphore.returnLease(held);
      }
    };
  }
}
