// A store whose answers a test gives by hand: every verb is recorded and waits for its answer.
#pragma once

#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

// Not thread-safe. A claim is called "a", "b", ... in the order in which the store first saw it.
class fake_store final : public spi::store {
 public:
  template <class Answer>
  struct pending {
    spi::claim_ptr claim;
    spi::op_context context;
    spi::completion<Answer> done;
  };
  struct pending_renewal {
    std::vector<spi::claim_ptr> claims;
    spi::op_context context;
    spi::completion<std::vector<spi::renewal>> done;
  };

  fake_store() { capabilities.engine = "fake"; }

  spi::caps capabilities;
  // Verbs in the order in which they were called: "attempt a", "renew a b", "leave a".
  std::vector<std::string> log;
  std::deque<pending<spi::outcome>> attempts;
  std::deque<pending<spi::armed>> watches;
  std::deque<pending<spi::departure>> leaves;
  std::deque<pending_renewal> renewals;
  std::deque<pending<spi::granted>> changes;
  std::deque<pending<spi::granted>> transfers;  // their claim: the one that is to hold
  spi::blocked last_seen;                       // what the last watch() was given
  bool closed = false;

  // Answer the oldest call of the verb. False: there is none.
  bool answer_attempt(result<spi::outcome> answer);
  bool answer_watch(result<spi::armed> answer);
  bool answer_leave(result<spi::departure> answer);
  bool answer_renewal(result<std::vector<spi::renewal>> answer);
  bool answer_change(result<spi::granted> answer);
  bool answer_transfer(result<spi::granted> answer);

  // The claim's name, and its way back.
  std::string name_of(const spi::claim& claim);
  spi::wakeup& wakeup_of(const std::string& name) { return *wakeups_.at(name); }
  // Returns the log and clears it.
  std::string take_log();

  // spi::store
  [[nodiscard]] const spi::caps& caps() const noexcept override { return capabilities; }
  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override;
  void transfer(const spi::claim_id& from, spi::claim_ptr to, std::shared_ptr<spi::wakeup> wakeup,
                const spi::op_context& context, spi::completion<spi::granted> done) override;
  void close() noexcept override;

  // Not asked for by the core.
  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) override;
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) override;
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context,
              spi::completion<std::vector<spi::holder>> done) override;
  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) override;
  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context,
                    spi::completion<spi::latch_state> done) override;
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) override;
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) override;
  void probe(const spi::op_context& context,
             spi::completion<std::vector<spi::check>> done) override;

 private:
  std::map<spi::claim_id, std::string> names_;
  std::map<std::string, std::shared_ptr<spi::wakeup>> wakeups_;
};

}  // namespace holdfast::test
