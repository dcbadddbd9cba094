// Histories written by hand, and what the checkers say about them.
#pragma once

#include "sim/checkers.hpp"

#include <holdfast/result.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace holdfast::sim {

using namespace std::chrono_literals;

class checkers_test : public ::testing::Test {
 protected:
  checkers_test() {
    world.resources = {{resource_kind::mutex, 1},
                       {resource_kind::shared, 1},
                       {resource_kind::semaphore, 2},
                       {resource_kind::latch, 1}};
    world.waiter_lease = 10s;
    world.calm = true;
    world.round_trip = 10ms;
    world.recheck = 1s;
    world.recovery = 1s;
    world.lateness = 1ms;
    world.turn = 100us;
    watch_all(log, world);
  }

  // Adds a record some time after the last.
  void add(duration after, record line) {
    loop.at(loop.now() + after, outside, event_class::timer, [this, line] { log.add(line); });
    while (loop.step(moment::max())) {
    }
  }
  // What was broken, at the end; only for one guarantee, since histories here are fragments.
  std::string broken(std::string_view guarantee) {
    log.finish();
    for (const violation& each : log.violations()) {
      if (each.checker == guarantee) return each.message;
    }
    return "";
  }

  // A hold with its own number, claim and client, from the request to its validity.
  void hold(std::int32_t number, std::int32_t resource, std::uint64_t fence,
            spi::mode mode = spi::mode::exclusive, std::uint32_t permits = 1) {
    record line = about(number, resource, mode, permits);
    line.kind = what::acquire_invoked;
    line.number = 1;
    add(1ms, line);
    grant(number, resource, fence);
    line.fence = fence;
    line.kind = what::acquire_granted;
    line.until = 10s;
    add(1ms, line);
    line.kind = what::validity_began;
    line.number = 0;
    add(0ms, line);
  }
  void grant(std::int32_t number, std::int32_t resource, std::uint64_t fence) {
    record line = about(number, resource);
    line.kind = what::server_granted;
    line.fence = fence;
    line.number = 1;
    line.until = loop.now() + 10s;
    add(0ms, line);
  }
  void say(what kind, std::int32_t number, std::int32_t resource, std::int64_t value = 0,
           duration after = 1ms) {
    record line = about(number, resource);
    line.kind = kind;
    line.number = value;
    line.until = loop.now() + after;
    add(after, line);
  }
  static record about(std::int32_t number, std::int32_t resource,
                      spi::mode mode = spi::mode::exclusive, std::uint32_t permits = 1) {
    record line;
    line.process = number;
    line.resource = resource;
    line.acquisition = number;
    line.claim = number;
    line.hold = number;
    line.mode = mode;
    line.permits = permits;
    line.fair = true;
    return line;
  }

  facts world;
  event_loop loop;
  node outside{node_clock{}};
  history log{loop, nullptr};
};

}  // namespace holdfast::sim
