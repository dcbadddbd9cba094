// Curator with its own defaults: InterProcessMutex, InterProcessReadWriteLock.
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;

final class CuratorLocks implements Peer.Locks {
  private final CuratorFramework client;

  CuratorLocks(String host) throws Exception {
    client = CuratorFrameworkFactory.newClient(host, 30000, 15000, new RetryOneTime(1000));
    client.start();
    client.blockUntilConnected();
  }

  @Override
  public Peer.Lock make(String name, String mode) {
    final String path = "/" + name.replace('/', '-');
    final InterProcessMutex lock;
    switch (mode) {
      case "read":
        lock = new InterProcessReadWriteLock(client, path).readLock();
        break;
      case "write":
        lock = new InterProcessReadWriteLock(client, path).writeLock();
        break;
      default:
        lock = new InterProcessMutex(client, path);
    }
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

  @Override
  public void close() {
    client.close();
  }
}
