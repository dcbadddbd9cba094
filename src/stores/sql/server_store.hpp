// What all strategies of all SQL servers have in common: a control connection, for
// inspection and for registering interests at the server, and the notification listener that
// receives the notifications.
#pragma once

#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/sql/engine.hpp"
#include "stores/sql/notifications.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sql {

// Thread-safe.
class server_store : public spi::store, public std::enable_shared_from_this<server_store> {
 public:
  ~server_store() override = default;
  server_store(const server_store&) = delete;
  server_store& operator=(const server_store&) = delete;

  [[nodiscard]] const spi::caps& caps() const noexcept final { return caps_; }

  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) final;
  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) final;
  void probe(const spi::op_context& context, spi::completion<std::vector<spi::check>> done) final;

 protected:
  server_store(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<const engine> of,
               spi::caps caps);

  [[nodiscard]] bool usable() const noexcept;
  [[nodiscard]] tl::unexpected<error> refusal() const;
  [[nodiscard]] tl::unexpected<error> failed(errc code, const std::string& why) const {
    return failure(code, engine_->name + ": " + why);
  }
  // False: it was closed before, or this is a forked child, which touches nothing.
  [[nodiscard]] bool begin_close() noexcept;

  // One call, whose rows `convert` turns into an answer.
  template <class T, class Convert>
  void ask(connection& over, statement which, arguments&& with, const terms& until,
           spi::completion<T> done, Convert convert) {
    if (!usable()) return done(refusal());
    over.send(which, std::move(with), until,
              [done = std::move(done), convert](result<rows> said) mutable {
                if (!said) return done(tl::unexpected(std::move(said.error())));
                done(convert(*said));
              });
  }

  const runtime::fork_guard guard_;
  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<const engine> engine_;
  const spi::caps caps_;
  const net::network net_;
  // Set once, when the store is made, then constant.
  std::shared_ptr<connection> control_;
  std::shared_ptr<sql::notifications> notifications_;

 private:
  std::atomic<bool> closed_{false};
};

// The store of the strategy that the engine's options name.
std::shared_ptr<spi::store> make_store(std::shared_ptr<spi::reactor> reactor,
                                       std::shared_ptr<const engine> of);
std::shared_ptr<spi::store> make_lease_store(std::shared_ptr<spi::reactor> reactor,
                                             std::shared_ptr<const engine> of);
std::shared_ptr<spi::store> make_session_store(std::shared_ptr<spi::reactor> reactor,
                                               std::shared_ptr<const engine> of);
std::shared_ptr<spi::store> make_row_store(std::shared_ptr<spi::reactor> reactor,
                                           std::shared_ptr<const engine> of);

}  // namespace holdfast::sql
