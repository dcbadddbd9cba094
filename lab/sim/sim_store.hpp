// The store of one simulated process: every verb is a message to the server, answered by its
// deadline at the latest, with `unavailable` if nothing came back.
//
// Keeps the rules of spi/store.hpp as a good store would: verbs keep their order on a connection, a
// request that may have been sent twice leaves a tombstone, every attempt carries a server time
// after which it is void, and after a new subscription all waiters are notified to ask again.
#pragma once

#include "sim/claim_book.hpp"
#include "sim/history.hpp"
#include "sim/link.hpp"
#include "sim/message.hpp"
#include "sim/random.hpp"
#include "sim/server.hpp"
#include "sim/step_listener.hpp"

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <map>
#include <memory>
#include <variant>
#include <vector>

namespace holdfast::sim {

struct store_settings {
  sim::dialect dialect = dialect::queueing;
  bool always_fair = false;
  bool fails_fast = true;             // without a connection: fails at once, or waits for one
  bool sends_again = false;           // what was in flight when a connection broke
  bool reconnects_on_silence = true;  // a deadline that passes costs the connection
};

class sim_store final : public spi::store, public link_user {
 public:
  sim_store(spi::runtime& runtime, sim::link& link, history& log, claim_book& book,
            std::int32_t process, const store_settings& settings, step_listener& steps);
  ~sim_store() override;

  [[nodiscard]] const spi::caps& caps() const noexcept override { return caps_; }
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
  void raise(spi::claim_ptr claim, fence_token fence, const spi::op_context& context,
             spi::completion<spi::granted> done) override;
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
  void close() noexcept override;

  // The server's time, as told when the first connection was made.
  void met(spi::server_time now) { heard_ = {runtime_.now(), now}; }

  // A push that is false or outdated: every claim that has a wakeup here was taken away.
  void cry_gone();

  // link_user
  void received(reply answer) override;
  void pushed(const push_value& news) override;
  void disconnected() override;
  void connected() override;
  void subscribed() override;

 private:
  using any_completion =
      std::variant<spi::completion<spi::outcome>, spi::completion<spi::departure>,
                   spi::completion<std::vector<spi::renewal>>, spi::completion<spi::granted>,
                   spi::completion<spi::armed>, spi::completion<spi::latch_state>>;
  struct operation {
    request_ptr message;
    any_completion done;
    spi::runtime::timer_id timer = 0;
    bool sent = false;
  };
  struct registered {
    std::shared_ptr<spi::wakeup> wakeup;
    bool copies = false;  // some request of it may arrive although another was answered
  };
  class latch_subscription;

  void begin(request message, const spi::op_context& context, any_completion done);
  void finish(std::uint64_t number, reply_value value);
  void complete(operation done, reply_value value);
  void overdue(std::uint64_t number);
  void note_answer(const operation& of, const reply_value& value);
  void tell_latch(const spi::resource_id& resource);

  spi::runtime& runtime_;
  sim::link& link_;
  history& log_;
  claim_book& book_;
  const std::int32_t process_;
  const store_settings settings_;
  step_listener& steps_;
  spi::caps caps_;
  bool closed_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::uint64_t next_operation_ = 1;
  std::map<std::uint64_t, operation> operations_;
  std::map<spi::claim_id, registered> wakeups_;
  std::uint64_t next_latch_watch_ = 1;
  std::map<std::uint64_t, std::pair<spi::resource_id, std::shared_ptr<spi::latch_watch>>>
      latch_watches_;
  // The last server time received, and when.
  std::optional<std::pair<time_point, spi::server_time>> heard_;
};

}  // namespace holdfast::sim
