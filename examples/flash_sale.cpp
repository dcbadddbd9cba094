// A flash sale: many buyers, few items, several shops. With the lock nothing is sold twice; each
// shop has a client of its own, as if it were a process of its own.
#include <holdfast/holdfast.hpp>

#include <iostream>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  const char* url = argc > 1 ? argv[1] : "memory:flash-sale";
  constexpr int shops = 3;
  constexpr int buyers = 60;
  int stock = 25;  // guarded by the lock
  int sold = 0;    // guarded by the lock

  std::vector<std::jthread> threads;
  for (int shop = 0; shop < shops; ++shop) {
    const auto client = holdfast::client::open(url).value();
    for (int i = 0; i < buyers / shops; ++i) {
      threads.emplace_back([&, client] {
        holdfast::mutex item(client, "item/7");
        const auto lease = item.acquire();
        if (!lease || stock == 0) return;
        std::this_thread::yield();  // without the lock, another would look at the same number now
        --stock;
        ++sold;
      });
    }
  }
  threads.clear();
  std::cout << sold << " sold, " << stock << " left\n";
  return sold == 25 && stock == 0 ? 0 : 1;
}
