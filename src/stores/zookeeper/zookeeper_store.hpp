// The store on ZooKeeper, in Curator's layout: a claim is an ephemeral sequential node,
// the order of the nodes is the order of the grants, and each claim that is not first
// watches the one before it.
#pragma once

#include "net/connector.hpp"
#include "stores/flow.hpp"
#include "stores/queued/queued_claim.hpp"
#include "stores/queued/queued_store.hpp"
#include "stores/zookeeper/line.hpp"
#include "stores/zookeeper/names.hpp"
#include "stores/zookeeper/options.hpp"
#include "stores/zookeeper/session.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::zookeeper {

// What the store knows of one claim of this process: where its node is, and what it watches.
//
// Guarded by the store's mutex.
struct entry : stores::queued_claim {
  std::shared_ptr<session> life;
  std::string path;  // of the resource
  claim_kind kind{};
  node_naming naming{};

  // In ZooKeeper.
  std::string parent;               // of its node: the path, or the semaphore's folder of locks
  std::string node;                 // the name; empty: none
  std::vector<std::string> leases;  // of a semaphore's holder: whole paths
  bool expects_end = false;         // we remove or replace our own node
  bool upgrading = false;  // if its node is a writer's: it may still have readers beside it

  // Watches.
  std::shared_ptr<watcher> watch;  // on the blocker
  std::string watched;
  opcode watched_by{};
  std::uint64_t look = 0;  // which look at the queue set the watch on the blocker
  bool shortcut = false;   // the blocker's end is our grant: no other look is needed
  bool armed = false;      // waiting, and the blocker is watched
  bool own_event = false;  // something happened to our node
  bool folder_watched = false;

  time_point looked_at{};

  // The end of our node says nothing: it was perhaps replaced, by a request that was not answered yet.
  [[nodiscard]] bool in_doubt() const noexcept { return expects_end || uncertain; }
  [[nodiscard]] bool nothing_made() const noexcept {
    return node.empty() && leases.empty() && !uncertain;
  }
  [[nodiscard]] fence_token fence() const noexcept { return stores::fence_of(created); }
  [[nodiscard]] duration life_time() const { return life->timeout(); }
  [[nodiscard]] std::string node_path() const { return parent + "/" + node; }
  // What shows that we hold: the node, or the first lease.
  [[nodiscard]] std::string token_path() const {
    return leases.empty() ? node_path() : leases.front();
  }
};

using entry_ptr = std::shared_ptr<entry>;

// Thread-safe. No lock is held while a completion, a wakeup or a session is called.
//
// What must hold:
//  1. A node counts as ours only if its ephemeral owner is the current session.
//  2. A hold is worth what the proof of its session is worth, not what the last answer says.
//  3. A node that may have been made is looked for by its protection (the claim's id) and removed
//     before its claim is over.
//  4. In a queue, every waiter watches one node: the end of a hold wakes one waiter.
class zookeeper_store final : public stores::queued_store<zookeeper_store, entry>,
                              public session_user {
 public:
  static constexpr std::size_t session_limit = 4;   // then one with a longer timeout is shared
  static constexpr int look_limit = 32;             // looks in a row at a queue that keeps changing
  static constexpr std::size_t data_limit = 1'000;  // nodes whose data `inspect` reads

  zookeeper_store(std::shared_ptr<spi::reactor> reactor, server_options options);
  ~zookeeper_store() override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;

  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) override;

  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) override;

  void close() noexcept override;

  void session_ended(std::int64_t id) override;

 private:
  friend claim_flow;
  friend queued_store;
  using children = std::vector<std::string>;

  // zookeeper_store.cpp
  std::shared_ptr<session> session_for(duration wanted);
  std::shared_ptr<session> any_session();
  [[nodiscard]] entry_ptr make_entry(spi::claim_ptr claim);
  entry::phase pass_to(entry& which, entry::phase next);
  void forgotten(entry& which);
  [[nodiscard]] std::string path_to(const spi::resource_id& resource) const {
    return path_of(*options_, resource);
  }

  // claims.cpp
  static task<result<spi::outcome>> place(self_ptr self, entry_ptr which, net::patience until);
  static task<result<spi::departure>> depart(self_ptr self, entry_ptr which, net::patience until);
  static task<result<void>> recover(self_ptr self, entry_ptr which, net::patience until);

  // locks.cpp, permits.cpp: the two ways to queue.
  static task<result<spi::outcome>> place_lock(self_ptr self, entry_ptr which, net::patience until);
  static task<result<spi::outcome>> place_permit(self_ptr self, entry_ptr which,
                                                 net::patience until);
  static task<result<bool>> make_node(self_ptr self, entry_ptr which, std::string data,
                                      std::vector<std::string> folders, replies& lists,
                                      net::patience until);
  static task<result<line_ptr>> join(self_ptr self, entry_ptr which, net::patience until);
  static task<result<line_ptr>> list_line(self_ptr self, entry_ptr which, net::patience until);
  static task<result<std::string>> stand_behind(self_ptr self, entry_ptr which, std::string blocker,
                                                bool shortcut, net::patience until);
  static result<void> check_size(const entry& which);
  [[nodiscard]] result<void> check_length(std::size_t before) const;
  // A server may be behind the others. of_now: with everything that was
  // answered to any client before.
  enum class freshness : std::uint8_t { any, of_now };
  static task<result<std::vector<children>>> look_around(std::shared_ptr<session> whom,
                                                         std::string path, freshness how,
                                                         net::patience until);
  static task<result<bool>> await_leases(self_ptr self, entry_ptr which, net::patience until);
  static task<result<bool>> take_leases(self_ptr self, entry_ptr which, net::patience until);
  static task<result<void>> check_max(self_ptr self, entry_ptr which, children locks,
                                      children leases, net::patience until);
  static task<result<void>> check_kind(self_ptr self, entry_ptr which, line_ptr around,
                                       net::patience until);
  static task<result<children>> list_children(std::shared_ptr<session> whom, std::string path,
                                              freshness how, net::patience until);
  static task<std::string> payload_at(std::shared_ptr<session> whom, std::string path,
                                      net::patience until);

  // watching.cpp: what happens to nodes while we wait or hold.
  void watch_blocker(const entry_ptr& which, opcode by, const std::string& path);
  [[nodiscard]] std::shared_ptr<watcher> own_watcher(const entry_ptr& which);
  // The holders in one folder that want to know when somebody queues behind them.
  struct folder_watch {
    std::vector<std::weak_ptr<entry>> members;
    std::shared_ptr<watcher> watch{};
    bool looking = false;
    bool stirred = false;  // since the last list was sent
  };
  [[nodiscard]] static bool folder_stirred(folder_watch& which);
  void end_idle_watches();
  [[nodiscard]] std::shared_ptr<watcher> folder_watcher(const listings::folder& where);
  void blocker_event(const entry_ptr& which, std::uint64_t look, const watch_event& event);
  void own_event(const entry_ptr& which, const watch_event& event);
  void guard(const entry_ptr& which);
  static flow look_at_own(self_ptr self, entry_ptr which);
  static flow look_at_folder(self_ptr self, listings::folder where);

  // claims.cpp: from reader to writer and back.
  static task<result<spi::granted>> change_mode(self_ptr self, entry_ptr which, spi::mode to,
                                                net::patience until);
  static task<result<void>> rename(self_ptr self, entry_ptr which, claim_kind to,
                                   net::patience until);

  // overview.cpp
  struct overview {
    spi::resource_state state;
    std::vector<std::vector<std::string>> paths;  // of each holder's nodes
  };
  static task<result<overview>> look(self_ptr self, std::string path, net::patience until);
  static task<result<spi::resource_state>> do_inspect(self_ptr self, std::string path,
                                                      net::patience until);
  static task<result<std::vector<spi::resource_summary>>> do_list(self_ptr self, std::string space,
                                                                  std::string prefix,
                                                                  net::patience until);
  static task<result<std::vector<spi::holder>>> do_revoke(self_ptr self, std::string path,
                                                          spi::revocation how, std::string claim,
                                                          net::patience until);

  // latches.cpp
  struct latch_count : stores::queued_latch {
    std::optional<std::int32_t> version;  // of the node, if there is one
  };
  static task<result<std::int64_t>> server_clock(self_ptr self, std::string path,
                                                 net::patience until);
  static task<result<latch_count>> read_count(self_ptr self, std::string path, std::string mark,
                                              net::patience until);
  static task<result<bool>> write_count(self_ptr self, std::string path, latch_count known,
                                        stores::queued_latch to, net::patience until);
  static task<result<bool>> clear_latch(self_ptr self, std::string path, std::int32_t known,
                                        net::patience until);

  // doctor.cpp
  static task<result<std::vector<spi::check>>> do_probe(self_ptr self, net::patience until);

  const std::shared_ptr<const server_options> options_;
  listings listings_;

  // All below: guarded by mutex_.
  std::map<duration, std::shared_ptr<session>> sessions_;  // by the timeout they asked for
  std::map<listings::folder, folder_watch> folder_watches_;
  std::map<std::string, std::size_t> in_line_;  // how many of our claims, by folder
  std::int64_t stamp_ = 0;                      // the leader's clock, in ms, as of
  time_point stamp_at_{};
};

// zookeeper://host[:port],...[/chroot]: docs/stores/zookeeper.md. Connects when it is first used;
// `pauses`: between two attempts.
result<std::shared_ptr<spi::store>> open_zookeeper(const spi::url& url,
                                                   std::shared_ptr<spi::reactor> reactor,
                                                   const net::backoff_limits& pauses);

}  // namespace holdfast::zookeeper
