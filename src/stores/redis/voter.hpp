// A Redis server as one member of a quorum: votes instead of attempts, which do not count until the
// server has kept its state for the longest ttl. Everything else is done by the native store.
#pragma once

#include "stores/forwarding_store.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/native_store.hpp"
#include "stores/redis/scripts.hpp"
#include "stores/redis/switchboard.hpp"
#include "stores/redis/topology.hpp"
#include "stores/redis/wire.hpp"

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <string>
#include <vector>

namespace holdfast::redis {

struct voting {
  duration longest_ttl{};  // of any claim of the quorum
  bool keeps = false;      // a restart of the server loses nothing: every write is synced
};

// Thread-safe.
class voter final : public stores::forwarding_store, public std::enable_shared_from_this<voter> {
 public:
  voter(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers,
        std::shared_ptr<native_store> inner, const voting& how);

  [[nodiscard]] const spi::caps& caps() const noexcept override { return caps_; }

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;
  void raise(spi::claim_ptr claim, fence_token fence, const spi::op_context& context,
             spi::completion<spi::granted> done) override;

  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override {
    board_->disconnect(partition_of(claim->resource), claim->id);
    inner()->leave(std::move(claim), context, std::move(done));
  }
  // Also whether its votes count yet. A new server starts counting the time now.
  void probe(const spi::op_context& context,
             spi::completion<std::vector<spi::check>> done) override;
  void close() noexcept override {
    board_->close();
    inner()->close();
  }

 private:
  using raised = std::vector<std::pair<spi::claim_ptr, fence_token>>;

  result<spi::outcome> vote_of(const spi::claim& claim, time_point sent,
                               const result<reply>& answer);
  struct votes {
    std::vector<spi::renewal> of_claims;  // in their order
    duration counts_after{};              // how long its votes do not count yet
  };
  // Claims of one partition, each with a fence. With none: only whether its votes count.
  void raise_all(const raised& those, time_point deadline, spi::completion<votes> done);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<topology> topology_;
  const std::shared_ptr<const scripts> scripts_;
  const sender sender_;
  const std::shared_ptr<switchboard> board_;  // for revocations: nobody queues here
  const spi::caps caps_;
  const std::string longest_;
  const std::string keeps_;
  server_times times_;
};

}  // namespace holdfast::redis
