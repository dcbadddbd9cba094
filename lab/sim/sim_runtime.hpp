// The runtime of one simulated process: its own clock over the world's virtual time. What it runs
// waits while the process is paused.
#pragma once

#include "sim/event_loop.hpp"
#include "sim/random.hpp"

namespace holdfast::sim {

// How late timers and notices may be.
struct lateness {
  duration timer{};   // at most
  duration notice{};  // of notify(), at most: an earlier callback may be slow
};

class sim_runtime final : public spi::runtime {
 public:
  sim_runtime(event_loop& loop, node& process, random_source random, const lateness& late)
      : loop_(loop), process_(process), random_(random), late_(late) {}

  [[nodiscard]] time_point now() const noexcept override {
    return time_point(process_.clock().shows(loop_.now()));
  }
  void post(spi::task work) override;
  timer_id at(time_point when, spi::task work) override;
  void cancel(timer_id timer) noexcept override { loop_.cancel(timer); }
  std::uint64_t random() override { return random_.next(); }
  void notify(spi::task work) override;
  [[nodiscard]] bool on_own_thread() const noexcept override { return false; }

  // A simulated world has no thread that could block.
  void wait(const std::atomic<bool>& done) override;
  void wake(const std::atomic<bool>& done) noexcept override;

 private:
  event_loop& loop_;
  node& process_;
  random_source random_;
  const lateness late_;
  moment last_notice_{};
};

}  // namespace holdfast::sim
