// A small world on virtual time: one server (the memory engine's), one client whose n-th call
// breaks, and two clients without faults. Checks throughout that no two holders are valid at
// once.
#pragma once

#include "stores/memory/hub.hpp"
#include "support/engine_bench.hpp"
#include "support/faulty_store.hpp"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

inline constexpr duration usual_ttl = 6s;

// A request of this world: ttl 6 s.
core::request brief_request(const std::string& name = "stock", duration wait = forever);

// Not thread-safe.
class fault_world {
 public:
  explicit fault_world(const fault_plan& plan);
  ~fault_world();  // lets what is late arrive
  fault_world(const fault_world&) = delete;
  fault_world& operator=(const fault_world&) = delete;

  // The client with the fault, and the two without.
  engine_bench& troubled() { return *troubled_; }
  engine_bench& other() { return *other_; }
  engine_bench& third() { return *third_; }
  // The store of the troubled client, for latches.
  spi::store& troubled_store() { return *faulty_; }
  spi::store& other_store() { return *other_store_; }
  manual_runtime& runtime() { return *runtime_; }
  [[nodiscard]] bool fault_met() const { return faulty_->struck(); }

  // Asks, and from then on checks what is granted.
  question_ptr ask(engine_bench& who, core::request request);
  question_ptr ask(engine_bench& who) { return ask(who, brief_request()); }

  // Lets time pass, looking every tenth of a second.
  void pass(duration span);
  // The same until the condition holds, for at most this long. False: it never did.
  bool wait_until(const std::function<bool()>& so, duration limit);
  // Granted within the limit; else a test failure.
  void expect_granted(const question_ptr& asked, duration limit);
  // Releases, waits for the answer, and expects ok or unavailable: never "lost".
  void expect_release(const question_ptr& asked);
  // Holds for this long, valid all the time: one fault never costs a lease.
  void expect_hold(const question_ptr& asked, duration span);

  // The hold was changed: it excludes others than before.
  void becomes(const question_ptr& asked, spi::mode mode);

  // Nothing is left: no claim in any client, none on the server, and none appears later.
  void expect_nothing_left();

  // What the server has under the name.
  spi::resource_state on_server(const std::string& name);

 private:
  struct tracked_hold {
    question_ptr asked;
    core::request request;
  };

  void check_exclusion() const;

  std::shared_ptr<manual_runtime> runtime_;
  std::shared_ptr<memory::hub> server_;
  std::shared_ptr<faulty_store> faulty_;
  std::shared_ptr<spi::store> other_store_;
  std::unique_ptr<engine_bench> troubled_;
  std::unique_ptr<engine_bench> other_;
  std::unique_ptr<engine_bench> third_;
  std::vector<tracked_hold> holds_;
};

}  // namespace holdfast::test
