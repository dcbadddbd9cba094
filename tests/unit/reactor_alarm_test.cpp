// The one alarm that serves all timers, when nobody is waiting for it.
#include "reactor_harness.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace holdfast::test {
namespace {

// Broken: an alarm that a caller had set went off after that caller had left and before the next
// arrived; the engine's thread found a timer due, but trusted the alarm that none was, and looped
// forever while holding the lock. Every call into the reactor hung.
TEST(reactor_alarm, a_timer_fires_though_its_alarm_went_off_between_two_callers) {
  epoll_reactor reactor;
  for (int round = 0; round < 300; ++round) {
    std::promise<void> ran;
    auto fired = ran.get_future();
    reactor.at(reactor.now() + 500us, [&] { ran.set_value(); });
    // Callers come and go, each asleep in the kernel briefly, until it has fired.
    while (fired.wait_for(0s) != std::future_status::ready) {
      std::atomic<bool> done{false};
      std::jthread other([&] { finish(reactor, done); });
      reactor.wait(done);
    }
  }
}

}  // namespace
}  // namespace holdfast::test
