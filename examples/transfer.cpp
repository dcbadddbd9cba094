// Transfers between two accounts, in both directions at once: both locks or none, no deadlock.
#include <holdfast/holdfast.hpp>

#include <iostream>
#include <thread>

using namespace std::chrono_literals;

int main(int argc, char** argv) {
  const auto client = holdfast::client::open(argc > 1 ? argv[1] : "memory:").value();
  int giro = 100;  // each guarded by its account's lock
  int savings = 100;

  const auto transfer = [&](const char* from, const char* to, int& source, int& target) {
    holdfast::mutex first(client, from);
    holdfast::mutex second(client, to);
    holdfast::multi_lock both({&first, &second});
    for (int i = 0; i < 50; ++i) {
      const auto leases = both.acquire({.wait = 10s});
      if (!leases) return;
      --source;
      ++target;
    }
  };
  {
    std::jthread there([&] { transfer("account/giro", "account/savings", giro, savings); });
    std::jthread back([&] { transfer("account/savings", "account/giro", savings, giro); });
  }
  std::cout << giro << " + " << savings << '\n';
  return giro == 100 && savings == 100 ? 0 : 1;
}
