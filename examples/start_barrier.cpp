// Everybody starts when all are ready: a latch that lives outside of all processes.
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <iostream>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  const char* url = argc > 1 ? argv[1] : "memory:start-barrier";
  constexpr int workers = 3;
  std::atomic<int> ready{0};
  std::atomic<int> too_early{0};

  const auto worker = [&](const holdfast::client& client) {
    holdfast::latch start(client, "start");
    ready.fetch_add(1);
    const auto left = start.count_down();
    if (!left || !start.wait() || ready != workers) too_early.fetch_add(1);
  };

  const auto starter = holdfast::client::open(url).value();
  if (!holdfast::latch(starter, "start").set(workers)) return 1;
  std::vector<std::jthread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.emplace_back(worker, holdfast::client::open(url).value());
  }
  threads.clear();
  std::cout << ready << " were ready before the first one started\n";
  return too_early == 0 ? 0 : 1;
}
