// How the scripts and channels of a partition reach the server that has it. The store knows partitions only;
// which node has one, and what to do when that changes, is decided behind this interface: a single
// server has all, Sentinel finds the master, a cluster has them on several.
#pragma once

#include "stores/redis/client/subscriber.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/node.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// Thread-safe. Completions are called exactly once, by the until, under no lock.
class topology {
 public:
  virtual ~topology() = default;

  // Sends the script to the partition's node. Errors about the topology itself (MOVED, ASK, READONLY)
  // are dealt with here; others are replies. Scripts of one partition are executed in the order of the
  // calls, unless one was answered with unavailable.
  virtual void run(partition which, const script& what, std::span<const std::string_view> keys,
                   std::span<const std::string_view> arguments, const net::patience& until,
                   spi::completion<reply> done) = 0;
  // One command to the partition's node; its keys, if any, are the partition's.
  virtual void send(partition which, const command& what, const net::patience& until,
                    spi::completion<reply> done) = 0;
  // Listens at the partition's node, whichever that becomes: a change is an interruption and a new
  // confirmation.
  virtual result<std::unique_ptr<spi::subscription>> listen(
      partition which, const std::string& channel, std::weak_ptr<channel_listener> listener) = 0;

  // Once nodes() are known. unavailable: not by the deadline.
  virtual void ready(const net::patience&, spi::completion<void> done) { done({}); }

  // What the channels are; fixed for the topology's life.
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

  void run(partition which, const script& what, std::span<const std::string_view> keys,
           std::span<const std::string_view> arguments, const net::patience& until,
           spi::completion<reply> done) override {
    node_->run(which, what, what.call(keys, arguments), until, std::move(done));
  }
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
