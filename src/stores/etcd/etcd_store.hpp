// The store on etcd, in the layout of Go's concurrency package: a claim is a key attached to a
// lease, keys are granted in the order of the revisions that created them, and each claim that is
// not first watches the one before it.
#pragma once

#include "net/connector.hpp"
#include "stores/etcd/channel.hpp"
#include "stores/etcd/lease_keeper.hpp"
#include "stores/etcd/line.hpp"
#include "stores/etcd/options.hpp"
#include "stores/etcd/watch_hub.hpp"
#include "stores/queued/queued_claim.hpp"
#include "stores/queued/queued_store.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::etcd {

// What the store knows of one claim of this process: where its key is, and what it watches.
//
// Guarded by the store's mutex.
struct entry : stores::queued_claim {
  std::shared_ptr<lease_keeper> life;
  std::string prefix;  // of the resource
  std::string id;      // of its key: its own, or that of an earlier claim
  claim_kind kind{};

  // In etcd; `created` is 0 if its key does not exist, as far as we know, and owner_key() names the
  // owner of an adopted one.
  std::string key;
  std::int64_t fenced = 0;
  spi::mode mode{};      // as changed
  bool changed = false;  // there is a key for its mode
  // A request that creates a key was not answered, and may arrive when the claim is
  // over: its key is not reused.
  bool late = false;
  bool removing = false;      // a request that removes the key was sent
  bool handing_over = false;  // a request that gives the key to another claim was sent

  // Watches; null or 0: none.
  std::shared_ptr<blocker_watches::interest> watch;  // on its blocker
  std::string watched;                               // its key
  watch_hub::watch_id own_watch = 0;
  std::vector<watch_hub::watch_id> others_watches;
  int looks_again = 0;  // of a try, when a look is older than a removal of ours

  [[nodiscard]] bool nothing_made() const noexcept { return created == 0 && !uncertain; }
  [[nodiscard]] fence_token fence() const noexcept { return stores::fence_of(fenced); }
  [[nodiscard]] duration life_time() const { return life->time(); }
  // All its keys, except for the mode of a reader.
  [[nodiscard]] key_range keys() const { return keys_with(key); }
};

using entry_ptr = std::shared_ptr<entry>;

inline claim_kind kind_of(const spi::claim& claim) {
  if (claim.mode == spi::mode::permit) return claim_kind::permit;
  if (claim.mode == spi::mode::shared) return claim_kind::reader;
  return claim.role == spi::role::writer ? claim_kind::writer : claim_kind::lock;
}

// The lease in etcd outlives ours by the lock delay, to which the margin for clocks
// applies too. In whole seconds.
inline duration lease_time(const spi::claim& claim) {
  constexpr duration second = std::chrono::seconds(1);
  const duration wanted = claim.ttl + claim.lock_delay + claim.lock_delay / 50;
  return std::max<duration::rep>((wanted + second - duration{1}) / second, 1) * second;
}

// Keys that our earlier claims have left behind, for the next ones. etcd keeps a deleted key in its
// index until it is compacted, and a look at a queue passes all of them: with a new key for each
// claim, every grant would make the next one dearer.
//
// Not thread-safe.
class spare_keys {
 public:
  static constexpr std::size_t limit = 4096;  // in total; beyond it all are forgotten

  // `where`: the key without its id.
  std::optional<std::string> take(const std::string& where) {
    const auto found = ids_.find(where);
    if (found == ids_.end()) return std::nullopt;
    std::string id = std::move(found->second.back());
    found->second.pop_back();
    if (found->second.empty()) ids_.erase(found);
    --count_;
    return id;
  }

  void add(const std::string& where, std::string id) {
    if (count_ >= limit) {
      ids_.clear();
      count_ = 0;
    }
    ids_[where].push_back(std::move(id));
    ++count_;
  }

 private:
  std::map<std::string, std::vector<std::string>> ids_;  // none is empty
  std::size_t count_ = 0;
};

// Thread-safe. No lock is held while a completion, a wakeup or a channel is called.
//
// What must hold:
//  1. A hold is worth what the proof of its lease is worth, not what the last answer says.
//  2. A key of a reader or writer is put once: Go's RWMutex orders by the last change of a key.
//  3. A claim that is left while one of its requests may still arrive leaves a tombstone, on the
//     lease on which that request would put its key, so that it cannot revive the claim.
//  4. In a queue for a lock, every waiter watches one claim: the end of a hold wakes one waiter.
class etcd_store final : public stores::queued_store<etcd_store, entry>, public lease_user {
 public:
  static constexpr std::size_t lease_limit =
      16;                                // different ttls; then one with a longer ttl is shared
  static constexpr int look_limit = 32;  // looks in a row at a queue that keeps changing
  static constexpr std::size_t txn_limit = 100;  // operations; etcd takes 128

  etcd_store(std::shared_ptr<spi::reactor> reactor, server_options options);
  ~etcd_store() override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;
  void transfer(const spi::claim_id& from, spi::claim_ptr to, std::shared_ptr<spi::wakeup> wakeup,
                const spi::op_context& context, spi::completion<spi::granted> done) override;

  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) override;

  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) override;

  void close() noexcept override;

  void lease_ended(std::int64_t id) override;

 private:
  friend claim_flow;
  friend queued_store;

  // etcd_store.cpp
  std::shared_ptr<lease_keeper> lease_for(duration wanted);
  [[nodiscard]] entry_ptr new_entry(spi::claim_ptr claim);
  [[nodiscard]] entry_ptr make_entry(spi::claim_ptr claim);
  [[nodiscard]] std::string path_to(const spi::resource_id& resource) const {
    return prefix_of(*options_, resource);
  }
  void choose_key(entry& which);
  void spare(const entry& which);
  void forgotten(const entry& which);

  // modes.cpp
  static task<result<spi::granted>> change_mode(self_ptr self, entry_ptr which, spi::mode to,
                                                net::patience until);

  // claims.cpp
  static task<result<spi::departure>> depart(self_ptr self, entry_ptr which, net::patience until);
  spi::departure removed(entry& which, std::int64_t deleted, std::int64_t revision);
  struct follow_up {
    std::vector<watch_hub::watch_id> unneeded;
    entry_ptr next;  // the one that must look for permits now
  };
  [[nodiscard]] follow_up settled(const entry_ptr& which);
  void carry_out(const follow_up& rest);

  // A place in the queue.
  struct look {
    enum class of : std::uint8_t {
      all,         // the whole queue
      no_readers,  // except ourselves
      last_two,    // ours and the one before it; `count` is that of the whole queue
      own          // no other claim
    };
    of scope{};
    std::int64_t revision = 0;  // as of when
    std::int64_t count = 0;
    std::vector<key_value> kvs;
  };
  static bool is_definite(const result<reply>& answer, const result<txn_answer>& done);
  void lease_is_gone(entry& which, std::int64_t lease);
  static task<result<spi::outcome>> place(self_ptr self, entry_ptr which, net::patience until);
  static task<result<look>> put_in_line(self_ptr self, entry_ptr which, net::patience until);
  static task<result<look>> read_line(self_ptr self, entry_ptr which, look::of scope,
                                      net::patience until);
  [[nodiscard]] static look::of scope_of(spi::mode mode) noexcept;
  [[nodiscard]] static std::vector<key_range> ranges_of(look::of scope, const std::string& prefix,
                                                        const std::string& own);
  [[nodiscard]] static range_options limits_of(look::of scope, std::int64_t created);
  [[nodiscard]] static look seen_in(txn_answer& done, std::size_t first, look::of scope);
  [[nodiscard]] static bool doubtful(const line& order, const spi::claim& claim, std::size_t place);
  static task<result<spi::outcome>> try_first(self_ptr self, entry_ptr which, net::patience until);
  static task<result<spi::outcome>> judge(self_ptr self, entry_ptr which, look seen,
                                          net::patience until);
  [[nodiscard]] static bool begins_with_own(const entry& which, const look& seen);
  [[nodiscard]] static std::optional<standing> known_blocker(const entry& which, const look& seen);
  void stand_behind(const entry_ptr& which, const standing& blocker, std::int64_t seen);
  bool first_for_permits(const entry_ptr& which);
  [[nodiscard]] entry_ptr leave_permits(const entry_ptr& which);
  [[nodiscard]] bool leaves_here(entry& who, const standing& blocker, std::int64_t seen_at);

  struct renewal_round;
  static flow renew_on(self_ptr self, std::shared_ptr<lease_keeper> life,
                       std::shared_ptr<renewal_round> round, std::vector<std::size_t> which);
  void take_renewals(renewal_round& round, const std::vector<std::size_t>& which,
                     const std::vector<range_answer>& keys, bool answered);

  // watching.cpp: what happens to keys while we wait or hold.
  void guard(const entry_ptr& which);
  void own_news(const entry_ptr& which, const watch_news& news);
  void others_news(const entry_ptr& which, const watch_news& news);
  void drop_watches(const entry_ptr& which, std::vector<watch_hub::watch_id>& into);
  static flow look_at_hold(self_ptr self, entry_ptr which);

  // handover.cpp: claims that move between processes.
  static task<result<spi::granted>> hand_on(self_ptr self, entry_ptr which,
                                            const entry::handover& what, net::patience until);
  void leave_unknown(spi::claim_ptr claim, const spi::op_context& context,
                     spi::completion<spi::departure> done);
  static task<result<spi::granted>> hand_over(self_ptr self, entry_ptr which, spi::claim_ptr to,
                                              net::patience until);
  static task<result<spi::granted>> take_over(self_ptr self, entry_ptr which, spi::claim_id from,
                                              net::patience until);
  static task<result<bool>> take_key(self_ptr self, entry_ptr which, standing what,
                                     std::int64_t lease, net::patience until);
  spi::granted taken(const entry_ptr& which, const standing& what, std::int64_t owner);
  static task<result<std::optional<standing>>> find_detached(self_ptr self, spi::claim_ptr claim,
                                                             net::patience until);
  static task<result<spi::granted>> renew_detached(self_ptr self, spi::claim_ptr claim,
                                                   net::patience until);
  static task<result<spi::departure>> release_detached(self_ptr self, spi::claim_ptr claim,
                                                       net::patience until);
  static task<result<std::int64_t>> new_lease(self_ptr self, duration time, net::patience until);
  static flow end_lease(self_ptr self, std::int64_t lease);

  // overview.cpp `own`: the key of a claim that looks, without the other readers.
  static task<result<line>> look_at(self_ptr self, std::string prefix, look::of scope,
                                    std::string own, net::patience until);
  static task<result<spi::resource_state>> do_inspect(self_ptr self, std::string prefix,
                                                      net::patience until);
  static task<result<std::vector<spi::resource_summary>>> do_list(self_ptr self, std::string space,
                                                                  std::string prefix,
                                                                  net::patience until);
  static task<result<std::vector<spi::holder>>> do_revoke(self_ptr self, std::string prefix,
                                                          spi::revocation how, std::string claim,
                                                          net::patience until);

  // latches.cpp
  struct latch_count : stores::queued_latch {
    std::int64_t modified = 0;
    std::int64_t lease = 0;
  };
  static task<result<latch_count>> read_count(self_ptr self, std::string prefix, std::string mark,
                                              net::patience until);
  static task<result<bool>> write_count(self_ptr self, std::string prefix, latch_count known,
                                        stores::queued_latch to, net::patience until);

  // doctor.cpp
  static task<result<std::vector<spi::check>>> do_probe(self_ptr self, net::patience until);

  const std::shared_ptr<const server_options> options_;
  const std::shared_ptr<channel> way_;
  const std::shared_ptr<watch_hub> watches_;
  const std::shared_ptr<blocker_watches> blockers_;

  // All below: guarded by mutex_.
  std::int64_t last_removal_ = 0;  // the latest revision at which a claim of ours was removed
  std::map<duration, std::shared_ptr<lease_keeper>> leases_;  // by what was asked for
  spare_keys spare_keys_;
  std::map<std::string, spi::claim_id> reused_keys_;  // their current owners
  // The claims that wait here for permits of a resource, in their order: none is granted before the
  // first, so only that one watches and looks.
  std::map<std::string, std::map<std::int64_t, entry_ptr>> permit_lines_;  // by prefix and revision
};

// etcd://host[:port],...[/prefix]: docs/stores/etcd.md. Connects when it is first used; `pauses`:
// between two attempts.
result<std::shared_ptr<spi::store>> open_etcd(const spi::url& url,
                                              std::shared_ptr<spi::reactor> reactor,
                                              const net::backoff_limits& pauses);

}  // namespace holdfast::etcd
