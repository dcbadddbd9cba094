// A job that every host starts and only one may run: a host that finds it taken gives up.
#include <holdfast/holdfast.hpp>

#include <atomic>
#include <iostream>
#include <latch>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  const char* url = argc > 1 ? argv[1] : "memory:singleton-job";
  constexpr int hosts = 3;
  std::atomic<int> ran{0};
  std::latch all_asked(hosts);

  const auto host = [&](const holdfast::client& client) {
    holdfast::mutex job(client, "nightly-report");
    const auto lease = job.acquire({.wait = {}});  // a try
    all_asked.arrive_and_wait();                   // for the example: the job lasts that long
    if (!lease) return;                            // busy: another host does it
    ran.fetch_add(1);
    std::cout << "report written\n";
  };

  std::vector<std::jthread> threads;
  for (int i = 0; i < hosts; ++i) threads.emplace_back(host, holdfast::client::open(url).value());
  threads.clear();
  return ran == 1 ? 0 : 1;
}
