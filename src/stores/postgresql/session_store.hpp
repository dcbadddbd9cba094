// The store behind postgresql:// with strategy=session: a hold is an advisory lock of the one connection
// that carries all holds of this client. It ends with that connection; who waits asks when it is told
// to, so that no waiter occupies a connection.
#pragma once

#include "stores/postgresql/tied_store.hpp"
#include "stores/sql/ties.hpp"

#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace holdfast::postgresql {

// Thread-safe.
//
// A hold is believed while the connection lives and its answers come: a connection that ends is the loss
// of all that it carried, told at once, and no answer of a former connection is a grant. What proves
// life is an answered call of renew; the server keeps a connection that it hears nothing of for longer
// than anybody believes in it.
class session_store final : public tied_store {
 public:
  // Held at once by one client; the server's table of locks is shared by all its users.
  static constexpr std::size_t hold_limit = 4'096;

  static std::shared_ptr<session_store> make(std::shared_ptr<spi::reactor> reactor,
                                             server_options options);
  ~session_store() override;
  session_store(const session_store&) = delete;
  session_store& operator=(const session_store&) = delete;

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;

 private:
  session_store(std::shared_ptr<spi::reactor> reactor, server_options options);

  void let_go(const spi::claim_id& claim) override;
  void close_carriers() noexcept override;
  void granted(const spi::claim_ptr& claim, const std::shared_ptr<spi::wakeup>& holder,
               time_point sent, const sql::rows& rows, spi::completion<spi::outcome> done);
  void renewed(const std::vector<spi::claim_ptr>& claims, time_point sent, const sql::rows& rows,
               spi::completion<std::vector<spi::renewal>> done);
  void give_back(const spi::claim& claim, duration delay) override;

  // Set by make(), then constant.
  std::shared_ptr<sql::ties> ties_ = std::make_shared<sql::ties>();
  std::shared_ptr<connection> carrier_;
};

}  // namespace holdfast::postgresql
