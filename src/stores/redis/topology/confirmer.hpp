// wait_replicas: a grant counts once so many replicas have it. On connections of its own, because
// WAIT holds up everything behind it.
#pragma once

#include "net/connector.hpp"
#include "stores/redis/client/connection.hpp"
#include "stores/redis/client/script.hpp"
#include "stores/redis/layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace holdfast::redis {

// Thread-safe. All scripts of a lane go over one connection, so that they stay in order; those that
// give something are followed by a write and a WAIT. The write is there because WAIT counts from
// the last write of its own connection: a script that finds its claim granted already, by a push or
// by an attempt whose answer was lost, writes nothing.
class confirmer : public std::enable_shared_from_this<confirmer> {
 public:
  static constexpr std::size_t connection_count = 8;
  static constexpr duration longest_wait = std::chrono::seconds(1);

  confirmer(const net::network& net, const server_options& options, const connection::events& tell);

  // A command that script::call() made. unavailable: too few replicas confirmed it in time;
  // whether it stays granted is not known, as if there had been no answer.
  void run(lane which, const script& what, command made, const net::patience& until,
           spi::completion<reply> done, bool asking);
  void close() noexcept;

 private:
  void confirm(lane which, const script& what, std::shared_ptr<const command> made,
               const net::patience& until, spi::completion<reply> done, bool asking, int reloads);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::string where_;
  const std::uint32_t replicas_;
  std::array<std::shared_ptr<connection>, connection_count> connections_;
};

}  // namespace holdfast::redis
