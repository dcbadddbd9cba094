// What strategy=session and strategy=row have in common: their holds are tied to connections. What
// people see and do goes over a desk of its own, so that no look delays a sign of life; what such locks
// cannot have is refused.
#pragma once

#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/postgresql/connection.hpp"
#include "stores/postgresql/hearing.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/sql/run_out.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::postgresql {

// Thread-safe.
//
// Shutdown: verbs are refused; calls under way are answered; the connections end, and the holds with
// them; nothing is heard any more.
class tied_store : public spi::store, public std::enable_shared_from_this<tied_store> {
 public:
  ~tied_store() override = default;
  tied_store(const tied_store&) = delete;
  tied_store& operator=(const tied_store&) = delete;

  [[nodiscard]] const spi::caps& caps() const noexcept final { return caps_; }

  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) final;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) final;
  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) final;
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) final;
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context, spi::completion<std::vector<spi::holder>> done) final;
  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) final;
  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context, spi::completion<spi::latch_state> done) final;
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) final;
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) final;
  void probe(const spi::op_context& context, spi::completion<std::vector<spi::check>> done) final;
  void close() noexcept final;

 protected:
  tied_store(std::shared_ptr<spi::reactor> reactor, server_options options);
  // Once, when the store is shared.
  void set_up();

  // A hold was taken away by force: its connection gives it back.
  virtual void let_go(const spi::claim_id& claim) = 0;
  // Nobody waits for the answer. `delay`: it ended abnormally, and its name stays shut for so long.
  virtual void give_back(const spi::claim& claim, duration delay) = 0;
  // The connections that carry holds.
  virtual void close_carriers() noexcept = 0;

  [[nodiscard]] bool usable() const noexcept;
  // The permits and orders that these locks do not have.
  [[nodiscard]] result<void> fits(const spi::claim& claim) const;
  [[nodiscard]] static tl::unexpected<error> refusal();
  [[nodiscard]] std::int64_t strategy_number() const noexcept;

  const runtime::fork_guard guard_;
  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<const server_options> options_;
  const spi::caps caps_;
  const net::network net_;
  // Set by set_up(), then constant.
  std::shared_ptr<connection> desk_;
  std::shared_ptr<hearing> hearing_;
  std::shared_ptr<sql::run_out> run_out_;

 private:
  struct forcing;
  void await_forced(const std::shared_ptr<forcing>& what);

  template <class T, class Convert>
  void ask(statement which, arguments&& with, const spi::op_context& context,
           spi::completion<T> done, Convert convert);
  [[nodiscard]] tl::unexpected<error> lacks(const char* what) const;

  std::atomic<bool> closed_{false};
};

}  // namespace holdfast::postgresql
