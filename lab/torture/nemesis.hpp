// Carries out a schedule: begins and ends each fault at its time, and records that it did.
#pragma once

#include "torture/client_processes.hpp"
#include "torture/plan.hpp"
#include "torture/testbed.hpp"

#include <map>
#include <set>
#include <vector>

namespace holdfast::torture {

// Not thread-safe.
class nemesis {
 public:
  nemesis(const plan& wanted, testbed& engine, client_processes& clients, time_point start);

  // Does what is due by now. Blocks while a server starts.
  void act();
  // Ends the faults in progress.
  void heal();
  [[nodiscard]] bool done() const noexcept { return next_ == steps_.size(); }
  [[nodiscard]] sim::moment next() const {
    return done() ? sim::moment::max() : steps_[next_].at + late_;
  }
  // How far everything is behind the plan because servers were slow.
  [[nodiscard]] duration late() const noexcept { return late_; }
  [[nodiscard]] std::size_t begun() const noexcept { return begun_; }
  [[nodiscard]] const std::vector<sim::record>& records() const noexcept { return records_; }

 private:
  struct step {
    sim::moment at{};
    std::size_t order = 0;
    bool begins = false;
  };
  struct victim {
    std::uint32_t target = 0;
    std::vector<std::int32_t> processes;  // nobody: everybody
  };

  template <class Action>
  void timed(const Action& act) {
    const time_point before = clock::now();
    act();
    late_ += clock::now() - before;
  }
  void begin(std::size_t which);
  void end(std::size_t which);
  void note(sim::what kind, fault what, std::int32_t process);
  [[nodiscard]] std::uint32_t target_of(const order& one) const;
  [[nodiscard]] std::vector<std::int32_t> victims_of(fault what, std::uint32_t target) const;
  template <class Action>
  void at_others(std::uint32_t spared, const Action& act) const {
    for (std::uint32_t i = 0; i < plan_.clients; ++i) {
      if (i != spared) act(i);
    }
  }

  const plan& plan_;
  testbed& testbed_;
  client_processes& clients_;
  time_point start_;
  std::vector<step> steps_;
  std::size_t next_ = 0;
  std::size_t begun_ = 0;
  duration late_{};
  std::set<fault> fired_;
  std::map<std::size_t, victim> active_;  // by order
  std::vector<sim::record> records_;
};

}  // namespace holdfast::torture
