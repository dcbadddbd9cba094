// The store behind postgresql:// with strategy=row: a hold is a row's lock (SELECT ... FOR UPDATE, FOR
// SHARE) in a transaction that stays open on a connection of its own, and ends with it.
#pragma once

#include "stores/postgresql/row_pool.hpp"
#include "stores/postgresql/tied_store.hpp"

#include <holdfast/spi/store.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::postgresql {

// Thread-safe.
//
// A claim is tried on a free connection: transaction, lock without waiting; if it is not free the
// transaction ends, and the claim stands in a table until it is told to try again. If it is, the desk
// writes down who holds, and gives the fence, before the grant is answered. Any error in a transaction
// ends its connection: what the server has rolled back must not be believed.
class row_store final : public tied_store {
 public:
  static std::shared_ptr<row_store> make(std::shared_ptr<spi::reactor> reactor,
                                         server_options options);
  ~row_store() override;
  row_store(const row_store&) = delete;
  row_store& operator=(const row_store&) = delete;

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;

 private:
  // An attempt under way. A leave that comes meanwhile is carried out after it.
  struct wish {
    spi::claim_ptr claim;
    std::shared_ptr<spi::wakeup> wakeup;
    time_point sent;
    time_point deadline;
    int tries = 0;
    spi::completion<spi::outcome> done;
    std::vector<spi::task> after;  // guarded by mutex_
  };
  struct giving {
    std::size_t count = 0;
    std::vector<spi::task> then;
  };
  struct roll;

  row_store(std::shared_ptr<spi::reactor> reactor, server_options options);

  void let_go(const spi::claim_id& claim) override;
  void give_back(const spi::claim& claim, duration delay) override;
  void close_carriers() noexcept override;

  // The steps of an attempt.
  void confirm(const std::shared_ptr<wish>& what, const std::shared_ptr<seat>& holder);
  void take(const std::shared_ptr<wish>& what);
  void took(const std::shared_ptr<wish>& what, const std::shared_ptr<seat>& in,
            result<sql::rows> rows);
  void record(const std::shared_ptr<wish>& what, const std::shared_ptr<seat>& in,
              std::int64_t at_least);
  void make_row(const std::shared_ptr<wish>& what);
  void stand_in_line(const std::shared_ptr<wish>& what);
  void finish(const std::shared_ptr<wish>& what, result<spi::outcome> answer);

  void given(const std::string& key);
  void roll_back(const std::shared_ptr<seat>& in);
  void end(const std::shared_ptr<seat>& in, const spi::claim& claim, duration delay,
           time_point deadline, spi::completion<spi::departure> done);
  void beat(const std::shared_ptr<roll>& all, std::size_t index, const std::shared_ptr<seat>& in,
            time_point deadline);
  void arrived(roll& all);
  void refresh(const std::shared_ptr<roll>& all, std::vector<std::size_t> part,
               time_point deadline);

  std::shared_ptr<row_pool> pool_;  // set by make(), then constant

  std::mutex mutex_;
  std::map<spi::claim_id, std::shared_ptr<wish>> wishes_;  // guarded by mutex_: attempts under way
  // guarded by mutex_: names being given back. Who asks for one of them comes after, as on one connection.
  std::map<std::string, giving> giving_;
};

}  // namespace holdfast::postgresql
