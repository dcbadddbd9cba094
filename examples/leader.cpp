// A leader and its successor: candidates wait for their turn, anybody may watch.
#include <holdfast/holdfast.hpp>

#include <iostream>
#include <latch>
#include <thread>

int main(int argc, char** argv) {
  const char* url = argc > 1 ? argv[1] : "memory:leader";
  const auto client = holdfast::client::open(url).value();
  std::latch both_have_led(2);

  const auto watching = holdfast::election(client, "scheduler", "observer")
                            .observe([](const std::optional<holdfast::leader_info>& leader) {
                              std::cout << ("leader: " + (leader ? leader->id : "nobody") + "\n")
                                        << std::flush;
                            });

  const auto candidate = [&](const std::string& host) {
    holdfast::election scheduler(client, "scheduler", host);
    const auto term = scheduler.campaign();  // waits until leader
    if (!term || term->lost().stop_requested()) return;
    both_have_led.count_down();  // leads; the lease ends with this scope: it resigns
  };

  std::jthread one(candidate, "host-1");
  std::jthread two(candidate, "host-2");
  both_have_led.wait();
}
