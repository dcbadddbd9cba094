// How the scripts and channels of a partition reach the server that has it. The store only knows
// partitions; which node has one, and what to do when that changes, is decided behind this
// interface: a single server has all, Sentinel finds the master, a cluster has them on several.
#pragma once

#include "net/connector.hpp"
#include "stores/redis/client/batch.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/connection.hpp"
#include "stores/redis/client/subscriber.hpp"
#include "stores/redis/layout.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// One Redis server as the store sees it: a connection for commands, one for subscriptions.

// wait_replicas: a grant counts once this many replicas have it. Uses its own connections, because
// WAIT holds up everything behind it.

// Thread-safe. All scripts of a partition go over one connection, so that they stay in order; those
// that grant something are followed by a write and a WAIT. The write is there because WAIT counts
// from the last write of its own connection: a script that finds its claim granted already, by a
// push or by an attempt whose answer was lost, writes nothing.
class confirmer : public std::enable_shared_from_this<confirmer> {
 public:
  static constexpr std::size_t connection_count = 8;
  static constexpr duration longest_wait = std::chrono::seconds(1);

  confirmer(const net::network& net, const server_options& options, const connection::events& tell);

  // A script's call. unavailable: too few replicas confirmed it in time; whether it stays granted
  // is unknown, as if there had been no answer.
  void run(partition which, pending_ptr call);
  void close() noexcept;

 private:
  void confirm(partition which, std::shared_ptr<pending> call);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::string where_;
  const std::uint32_t replicas_;
  std::array<std::shared_ptr<connection>, connection_count> connections_;
};

// Thread-safe. Both connect when they are first needed.
class node {
 public:
  node(const net::network& net, const server_options& options, const connection::events& tell = {});
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  // A script's call. Error replies are replies.
  void run(partition which, pending_ptr call);
  // asking: after ASKING.
  void send(const command& what, const net::patience& until, spi::completion<reply> done,
            bool asking = false) {
    commands_->send(what, until, std::move(done), asking);
  }
  result<std::unique_ptr<spi::subscription>> listen(const channel_id& channel,
                                                    std::weak_ptr<channel_listener> listener);

  [[nodiscard]] const server_options& options() const noexcept { return commands_->options(); }
  // "redis db.example:6379"
  [[nodiscard]] std::string where() const { return "redis " + options().where.text(); }
  [[nodiscard]] std::optional<server_info> server() const { return commands_->server(); }

  // Every command has been answered and no listener is called afterwards.
  void close() noexcept;

 private:
  const std::shared_ptr<connection> commands_;
  const std::shared_ptr<subscriber> channels_;
  const std::shared_ptr<confirmer> confirmer_;  // with wait_replicas: all scripts go through it
};

// Thread-safe. Completions are called exactly once, by the deadline, under no lock.
class topology {
 public:
  virtual ~topology() = default;

  // Sends a script's call to the partition's node. Errors about the topology itself (MOVED, ASK,
  // READONLY) are handled here; others are replies. Scripts of one partition are executed in the
  // order of the calls, unless one was answered with unavailable.
  virtual void run(partition which, pending_ptr call) = 0;
  template <class Done>
  void run(partition which, const script& what, std::span<const std::string_view> keys,
           std::span<const std::string_view> arguments, const net::patience& until, Done done) {
    run(which, make_call(what, what.call(keys, arguments), until, std::move(done)));
  }
  // One command to the partition's node; its keys, if any, are the partition's.
  virtual void send(partition which, const command& what, const net::patience& until,
                    spi::completion<reply> done) = 0;
  // Listens at the partition's node, even when that changes: a change is an
  // interruption and a new confirmation.
  virtual result<std::unique_ptr<spi::subscription>> listen(
      partition which, const std::string& channel, std::weak_ptr<channel_listener> listener) = 0;

  // Once nodes() are known. unavailable: not by the deadline.
  virtual void ready(const net::patience&, spi::completion<void> done) { done({}); }

  // The kind of channels; fixed for the topology's life.
  [[nodiscard]] virtual channel_id::flavour flavour() const noexcept = 0;
  // The nodes that have partitions now, each once: for listing, and for the doctor.
  [[nodiscard]] virtual std::vector<std::shared_ptr<node>> nodes() = 0;
  // For messages: "redis db.example:6379".
  [[nodiscard]] virtual std::string where() const = 0;
  // The same, with the node that has the partition now.
  [[nodiscard]] virtual std::string where(partition) const { return where(); }

  // Every command has been answered and no listener is called afterwards.
  virtual void close() noexcept = 0;
};

// All partitions on one server.
class single_server final : public topology {
 public:
  explicit single_server(std::shared_ptr<node> only) : node_(std::move(only)) {}

  using topology::run;
  void run(partition which, pending_ptr call) override { node_->run(which, std::move(call)); }
  void send(partition, const command& what, const net::patience& until,
            spi::completion<reply> done) override {
    node_->send(what, until, std::move(done));
  }
  result<std::unique_ptr<spi::subscription>> listen(
      partition, const std::string& channel, std::weak_ptr<channel_listener> listener) override {
    return node_->listen({channel_id::flavour::classic, channel}, std::move(listener));
  }
  [[nodiscard]] channel_id::flavour flavour() const noexcept override {
    return channel_id::flavour::classic;
  }
  [[nodiscard]] std::vector<std::shared_ptr<node>> nodes() override { return {node_}; }
  using topology::where;
  [[nodiscard]] std::string where() const override { return node_->where(); }
  void close() noexcept override { node_->close(); }

 private:
  const std::shared_ptr<node> node_;
};

}  // namespace holdfast::redis
