// A store around another that breaks one call: the n-th of a verb loses its request or its answer,
// or is late. For sweeps over n until no fault is met any more.
#pragma once

#include "stores/forwarding_store.hpp"

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

enum class verb : std::uint8_t {
  attempt,
  leave,
  renew,
  change,
  transfer,
  change_latch,
  read_latch,
  push
};

enum class fault : std::uint8_t {
  request_lost,      // never executed; no answer by the deadline
  answer_lost,       // executed; no answer by the deadline
  answer_late,       // executed; the answer comes at the deadline
  closed_before,     // the connection breaks: not executed, known at once
  closed_after,      // the same, but executed
  request_late,      // no answer by the deadline, and executed a second after it
  request_very_late  // ... fifteen seconds after it
};

std::string_view to_string(verb which) noexcept;
std::string_view to_string(fault what) noexcept;

struct fault_plan {
  verb where = verb::attempt;
  fault what = fault::request_lost;
  std::size_t n = 1;  // the n-th call, from 1
};

std::ostream& operator<<(std::ostream& out, const fault_plan& plan);

// Not thread-safe: for one thread and a manual runtime. For a push, `request_lost` means that it
// never arrives, `answer_late` that it is three seconds late, and anything else that it arrives
// twice.
class faulty_store final : public stores::forwarding_store {
 public:
  faulty_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<spi::store> inner,
               const fault_plan& plan);

  // The plan's call has come.
  [[nodiscard]] bool struck() const noexcept;

  // spi::store
  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override;
  void transfer(const spi::claim_id& from, spi::claim_ptr to, std::shared_ptr<spi::wakeup> wakeup,
                const spi::op_context& context, spi::completion<spi::granted> done) override;
  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context,
                    spi::completion<spi::latch_state> done) override;
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) override;

 private:
  class push_line;
  struct state;  // what outlives this object: pushes and late calls

  // `send` carries out the call, with whatever completion it is given.
  template <class T, class Send>
  void run(verb which, const spi::op_context& context, spi::completion<T> done, Send send);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<state> state_;
};

}  // namespace holdfast::test
