// The first example: a lock by name, held for a scope, with a fence for whatever it protects.
#include <holdfast/holdfast.hpp>

#include <iostream>
#include <mutex>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  auto client = holdfast::client::open(argc > 1 ? argv[1] : "memory:");
  if (!client) {
    std::cerr << client.error().message() << '\n';
    return 1;
  }
  holdfast::mutex stock(*client, "stock/42");

  {
    std::scoped_lock guard(stock);  // waits; throws if the engine is down
    std::cout << "order written with fence " << stock.lease().fence().value() << '\n';
  }

  if (auto lease = stock.acquire({.wait = 1s})) {  // throws nothing
    if (lease->valid()) std::cout << "sold with fence " << lease->fence().value() << '\n';
  } else if (lease.error() == holdfast::errc::timed_out) {
    std::cout << "too busy\n";
  }
}
