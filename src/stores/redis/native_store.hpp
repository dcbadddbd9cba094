// The Redis store in its native dialect: every primitive, fair and unfair, with direct hand-off.
// The rules are in library/*.lua, on the server; this sends claims there and returns the answers.
#pragma once

#include "stores/redis/event_feed.hpp"
#include "stores/redis/scripts.hpp"
#include "stores/redis/switchboard.hpp"
#include "stores/redis/topology.hpp"
#include "stores/redis/wire.hpp"

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// Thread-safe.
class native_store final : public spi::store, public std::enable_shared_from_this<native_store> {
 public:
  struct settings {
    duration offer = std::chrono::seconds(2);  // how long a pushed grant lives until it is renewed
    switchboard::pushes pushes = switchboard::pushes::as_grants;
  };

  native_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers,
               const settings& how);
  ~native_store() override;
  native_store(const native_store&) = delete;
  native_store& operator=(const native_store&) = delete;

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

 private:
  using fields = std::vector<std::string_view>;

  // Runs a script of the resource and gives `finish` its answer: called once, with an answer that
  // lives no longer than the call.
  template <class Finish>
  void ask_for(const place& where, const script& what, std::span<const std::string_view> arguments,
               const char* verb, const net::patience& until, Finish finish);
  // The same, and completes with what `read` makes of the answer.
  template <class T, class Read>
  void ask(const place& where, const script& what, std::span<const std::string_view> arguments,
           const char* verb, const net::patience& until, spi::completion<T> done, Read read);
  [[nodiscard]] error refused(const reply& answer, const char* verb, partition at) const;
  [[nodiscard]] std::string why_not(const result<reply>& answer, const char* verb,
                                    partition at) const;
  void send_attempt(const place& where, const spi::claim_ptr& claim, queueing how,
                    const net::patience& until, spi::completion<spi::outcome> done);
  // `held`: what the try was answered.
  void queue_when_open(const spi::claim_ptr& claim, const net::patience& until,
                       const spi::blocked& held, spi::completion<spi::outcome> done);
  void send_revoke(const place& where, spi::revocation how, const std::vector<spi::claim_id>& those,
                   const net::patience& until, spi::completion<std::vector<spi::holder>> done);
  void send_latch(const spi::resource_id& resource, const script& what, const fields& arguments,
                  const char* verb, const net::patience& until,
                  spi::completion<spi::latch_state> done);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<topology> topology_;
  const std::shared_ptr<const scripts> scripts_;
  const sender sender_;
  const spi::caps caps_;
  const std::shared_ptr<switchboard> board_;
  const std::shared_ptr<event_feed> feed_;
  server_times times_;
  std::atomic<bool> closed_{false};
};

// The names of a namespace that begin with what.name and are held or waited for.
// overloaded: more than 100,000.
void list_names(std::shared_ptr<topology> servers, std::shared_ptr<const scripts> with,
                std::shared_ptr<const spi::runtime> clock, spi::resource_id what,
                const net::patience& until,
                spi::completion<std::vector<spi::resource_summary>> done);

}  // namespace holdfast::redis
