// At most three calls at a time to a partner, no matter who makes them or where.
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <iostream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  const auto client = holdfast::client::open(argc > 1 ? argv[1] : "memory:").value();
  holdfast::semaphore api(client, "partner-api", {.max = 3});
  std::atomic<int> now{0};
  std::atomic<int> most{0};

  std::vector<std::jthread> workers;
  for (int i = 0; i < 12; ++i) {
    workers.emplace_back([&] {
      const auto permit = api.acquire();
      const int calls = ++now;
      for (int seen = most; calls > seen && !most.compare_exchange_weak(seen, calls);) continue;
      std::this_thread::sleep_for(5ms);  // the call
      --now;
    });
  }
  workers.clear();
  std::cout << "at most " << most << " calls at once\n";
  return most <= 3 ? 0 : 1;
}
