// Metrics: what a client does is counted, and written as Prometheus reads it.
#include <holdfast/holdfast.hpp>

#include <iostream>
#include <memory>

int main(int argc, char** argv) {
  using namespace std::chrono_literals;
  const char* url = argc > 1 ? argv[1] : "memory:metrics";
  const auto numbers = std::make_shared<holdfast::metrics>();
  const auto client = holdfast::client::open(url, {.metrics = numbers}).value();

  holdfast::mutex stock(client, "stock/42");
  for (int i = 0; i < 3; ++i) stock.acquire().value().release().value();  // three grants
  const auto held = stock.acquire().value();
  if (stock.acquire({.wait = 0s})) return 1;  // busy: counted, too

  holdfast::election scheduler(client, "scheduler", "host-1");
  const auto term = scheduler.campaign().value();

  // A service answers its scrapes with this, as text/plain; version=0.0.4.
  std::cout << numbers->prometheus_text();
}
