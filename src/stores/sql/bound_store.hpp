// What strategy=session and strategy=row have in common: their holds are bound to connections.
// Operators' verbs use a separate control connection, so that no look delays a sign of life; what
// such locks cannot have is refused.
#pragma once

#include "stores/sql/bound_claims.hpp"
#include "stores/sql/common/names.hpp"
#include "stores/sql/options.hpp"
#include "stores/sql/server_store.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sql {

// Thread-safe.
//
// Shutdown: verbs are refused; calls under way are answered; the connections end, and the holds
// with them; no notifications arrive any more.
class bound_store : public server_store {
 public:
  bound_store(std::shared_ptr<spi::reactor> reactor, const std::shared_ptr<const engine>& of);
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) final;
  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) final;
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) final;
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context, spi::completion<std::vector<spi::holder>> done) final;
  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context, spi::completion<spi::latch_state> done) final;
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) final;
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) final;
  void close() noexcept final;

 protected:
  // Called once, when the store is shared.
  void set_up();

  // A hold was revoked by force: its connection gives it back.
  virtual void let_go(const spi::claim_id& claim) = 0;
  // Nobody waits for the answer. `delay`: it ended abnormally, and its name
  // stays blocked for this long.
  virtual void give_back(const spi::claim& claim, duration delay) = 0;
  // The connections that carry holds.
  virtual void close_carriers() noexcept = 0;

  // Refuses permits and queue orders that these locks do not have.
  [[nodiscard]] result<void> fits(const spi::claim& claim) const;
  [[nodiscard]] result<void> check_name(const spi::resource_id& resource) const {
    return engine_->options().strategy == strategy::session ? engine_->check_name(resource)
                                                            : result<void>();
  }
  [[nodiscard]] std::int64_t strategy_number() const noexcept;

  // Set by set_up(), then constant.
  std::shared_ptr<sql::run_out> run_out_;

 private:
  // A holder that was asked to let go has this long; then its connection is ended.
  static constexpr duration letting_go = std::chrono::seconds(1);
  static constexpr duration between_looks = std::chrono::milliseconds(20);

  static spi::caps capabilities(const std::string& engine);
  std::shared_ptr<bound_store> own() {
    return std::static_pointer_cast<bound_store>(shared_from_this());
  }

  struct forcing;
  // None of our clients holds: a holder that is not ours cannot be asked to let go.
  void look_outside(const std::shared_ptr<forcing>& what, const std::string& claim);
  void await_forced(const std::shared_ptr<forcing>& what);

  [[nodiscard]] tl::unexpected<error> lacks(const char* what) const;
};

}  // namespace holdfast::sql
