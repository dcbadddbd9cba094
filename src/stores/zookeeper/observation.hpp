// Watches one name, or all of a namespace, and tells what happened there: what changed between two
// looks. Watches bring about each look; what came and went between two of them is not seen.
#pragma once

#include "stores/callback_guard.hpp"
#include "stores/zookeeper/options.hpp"
#include "stores/zookeeper/session.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

// Thread-safe. One look at a time; the sink is called under no lock.
class observation final : public std::enable_shared_from_this<observation> {
 public:
  observation(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<session> life,
              std::shared_ptr<const server_options> options, spi::resource_id resource,
              spi::function<void(const spi::store_event&)> sink);

  void start();
  // No event afterwards.
  void end();

 private:
  // Somebody who holds or waits.
  struct person {
    spi::mode mode{};
    bool holds = false;
    std::string token;  // the path of a node of its
    std::optional<fence_token> fence;
    std::string payload;
  };
  using people = std::map<std::string, person>;  // by public id

  void wake();
  static flow run(std::shared_ptr<observation> self);
  static task<bool> look(std::shared_ptr<observation> self);
  static task<bool> look_at(std::shared_ptr<observation> self, std::string name);
  static task<result<std::vector<std::string>>> watched_list(std::shared_ptr<observation> self,
                                                             std::string path);
  static task<bool> read_new(std::shared_ptr<observation> self, std::string name, people& now);
  void tell_changes(const std::string& name, const people& now);
  void tell(spi::event_kind kind, const std::string& name, const std::string& claim,
            const person& who);
  [[nodiscard]] question watching(request what, const std::string& path);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<session> life_;
  const std::shared_ptr<const server_options> options_;
  const spi::resource_id resource_;
  spi::function<void(const spi::store_event&)> sink_;  // only by callbacks_
  stores::callback_guard callbacks_;

  std::map<std::string, people> known_;  // by name; only within run()

  std::mutex mutex_;
  // All below: guarded by mutex_.
  bool running_ = false;
  bool dirty_ = false;
  std::set<std::pair<opcode, std::string>> armed_;
  std::set<std::string> changed_;  // paths whose data changed: what then ends was taken by force
};

}  // namespace holdfast::zookeeper
