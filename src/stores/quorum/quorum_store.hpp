// A store made of stores: a claim is granted when a majority of all members grants it. What one
// member forgets, or says while it is cut off, decides nothing.
//
// Members never queue and their pushes mean nothing alone, so core polls. Not there, and why:
//   fair     lines at several members split the vote and nobody has a majority
//   permits  a majority bounds them only above N * M / (M + 1) members: see docs/stores/quorum.md
//   change   an upgrade at a majority could leave a reader where it was not asked
//   latches, list, watch: each member tells a part, and no part is the whole
#pragma once

#include "stores/quorum/active_rounds.hpp"
#include "stores/quorum/quorum_context.hpp"
#include "stores/quorum/round.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::quorum {

struct settings {
  std::string engine = "redlock";
  quorum::limits limit{};
  // No claim may have a longer one: members that lost their state do not count for this long.
  duration longest_ttl = std::chrono::hours(24);
};

// Thread-safe.
class quorum_store final : public spi::store {
 public:
  quorum_store(std::shared_ptr<spi::runtime> runtime, std::vector<member> members,
               const settings& settings);
  ~quorum_store() override;
  quorum_store(const quorum_store&) = delete;
  quorum_store& operator=(const quorum_store&) = delete;

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
  [[nodiscard]] result<void> accepts(const spi::claim& claim) const;
  void reaffirm(const std::shared_ptr<round>& held, const spi::op_context& context,
                spi::completion<spi::outcome> done);
  [[nodiscard]] spi::claim_id new_id() const;

  const std::shared_ptr<quorum_context> context_;
  const settings settings_;
  const spi::caps caps_;
  // Shared with completions, which may come when this store is gone.
  const std::shared_ptr<active_rounds> active_rounds_;
};

}  // namespace holdfast::quorum
