// A store made of stores: a claim is granted when a majority of all members grants it. Nothing that
// one member forgets, or says while it is cut off, is decisive.
//
// Members never queue and a single push means nothing, so the core polls. Not supported, and why:
//   fair     queues at several members split the vote and nobody has a majority
//   permits  a majority bounds them only above N * M / (M + 1) members: see docs/stores/quorum.md
//   change   an upgrade at a majority could leave a reader at a member that was not asked
//   latches, list, watch: each member knows a part, and no part is the whole
#pragma once

#include "stores/quorum/quorum_context.hpp"
#include "stores/quorum/round.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::quorum {

struct settings {
  std::string engine = "redlock";
  quorum::limits limit{};
  // No claim may have a longer one: members that lost their state do not count for this long.
  duration longest_ttl = std::chrono::hours(24);
};

// The rounds of claims that are not over, by the core's id of the claim. Thread-safe; rounds are called and
// destroyed under no lock.
class active_rounds {
 public:
  [[nodiscard]] std::shared_ptr<round> find(const spi::claim_id& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = rounds_.find(id);
    return found == rounds_.end() ? nullptr : found->second;
  }

  void put(const spi::claim_id& id, std::shared_ptr<round> made, time_point now) {
    drop_over(now);
    const std::lock_guard lock(mutex_);
    rounds_[id].swap(made);
  }

  // Unless another round has taken its place.
  void forget(const spi::claim_id& id, const std::shared_ptr<round>& over) {
    const std::lock_guard lock(mutex_);
    const auto found = rounds_.find(id);
    if (found != rounds_.end() && found->second == over) rounds_.erase(found);
  }

  void clear() {
    std::map<spi::claim_id, std::shared_ptr<round>> all;
    const std::lock_guard lock(mutex_);
    all.swap(rounds_);
  }

 private:
  static constexpr std::size_t fewest = 1'000;

  // The core never leaves a lease that it lets run out: these are collected
  // when there are many rounds.
  void drop_over(time_point now) {
    std::vector<std::pair<spi::claim_id, std::shared_ptr<round>>> all;
    {
      const std::lock_guard lock(mutex_);
      if (rounds_.size() < next_look_) return;
      all.assign(rounds_.begin(), rounds_.end());
    }
    for (const auto& [id, each] : all) {
      if (each->over_at() < now) forget(id, each);
    }
    const std::lock_guard lock(mutex_);
    next_look_ = std::max(fewest, 2 * rounds_.size());
  }

  mutable std::mutex mutex_;
  std::map<spi::claim_id, std::shared_ptr<round>> rounds_;  // guarded by mutex_
  std::size_t next_look_ = fewest;                          // guarded by mutex_
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
  // Shared with completions, which may run after this store is gone.
  const std::shared_ptr<active_rounds> active_rounds_;
};

}  // namespace holdfast::quorum
