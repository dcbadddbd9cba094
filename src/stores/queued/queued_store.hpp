// What stores with a queue of nodes (ZooKeeper) or keys (etcd) have in common: the flow of claims,
// and the verbs of operators and latches, which all begin and end alike.
#pragma once

#include "net/patience.hpp"
#include "stores/flow.hpp"
#include "stores/queued/claim_flow.hpp"

#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::stores {

// Thread-safe, as claim_flow. Store also has
//   std::string path_to(resource) const     what all its nodes or keys begin with
//   do_inspect(), do_list(), do_revoke(), do_probe()        tasks: the answers of these verbs
//   latch_count                             derives from queued_latch
//   task<result<latch_count>> read_count(self, path, mark, until)
//   task<result<bool>> write_count(self, path, known, to, until)   false: changed since it was read
template <class Store, class Entry>
class queued_store : public claim_flow<Store, Entry> {
  using base = claim_flow<Store, Entry>;

 public:
  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) override {
    begin(std::move(done),
          [&] { return Store::do_inspect(self(), store().path_to(resource), context); });
  }
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) override {
    begin(std::move(done), [&] { return Store::do_list(self(), space, prefix, context); });
  }
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context,
              spi::completion<std::vector<spi::holder>> done) override {
    begin(std::move(done),
          [&] { return Store::do_revoke(self(), store().path_to(resource), how, claim, context); });
  }
  void probe(const spi::op_context& context,
             spi::completion<std::vector<spi::check>> done) override {
    begin(std::move(done), [&] { return Store::do_probe(self(), context); });
  }
  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context,
                    spi::completion<spi::latch_state> done) override {
    begin(std::move(done),
          [&] { return do_change_latch(self(), store().path_to(resource), change, context); });
  }
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) override {
    begin(std::move(done),
          [&] { return do_read_latch(self(), store().path_to(resource), context); });
  }

 protected:
  using typename base::entry_ptr;
  using typename base::lock_guard;
  using typename base::phase;
  using typename base::self_ptr;

  using base::base;
  ~queued_store() override = default;

  // Called with the mutex held. `proven`: that it is there, and lives by its session or lease, was seen just now.
  [[nodiscard]] spi::renewal renewal_of(Entry& which, time_point at, bool proven) const {
    const spi::claim& claim = *which.claim;
    spi::renewal answer;
    answer.at = server_time_of(at);
    answer.recheck_after = recheck_after;
    if (which.where == phase::waiting && proven) {
      answer.state = spi::hold_state::waiting;
      which.end_at = std::max(which.end_at, at + waiter_lease);
    }
    if (which.where != phase::held) return answer;
    answer.grant = this->grant_of(which, at);
    // Without a proof the answer is unknown: the session or lease may be over.
    if ((claim.renewed && !proven) || answer.grant.ttl == duration{0}) return answer;
    const bool renews = claim.renewed && !which.revoked;
    answer.state = renews ? spi::hold_state::renewed : spi::hold_state::held;
    if (renews) which.end_at = which.end_of_hold(at, at, answer.grant.ttl);
    return answer;
  }

  // Something happened without a verb: look at its place.
  void look_again(const entry_ptr& which) {
    {
      const lock_guard lock(this->mutex_);
      const time_point end = this->now() + which->time_to_look();
      if (which->until.deadline < end) which->until = end;
    }
    this->kick(which);
  }

 private:
  static constexpr int latch_rounds = 200;  // others were faster each time

  Store& store() noexcept { return static_cast<Store&>(*this); }
  self_ptr self() { return this->shared_from_this(); }

  // Starts the work that answers a caller's verb, unless the store is closed.
  template <class T, class Work>
  void begin(spi::completion<T> done, Work work) {
    if (this->closed_) return done(failure(errc::cancelled, "closed"));
    stores::answer(work(), std::move(done));
  }

  // --- latches ---

  // Can be repeated after a lost answer: the change's id shows what was done.
  static task<result<spi::latch_state>> do_change_latch(self_ptr self, std::string path,
                                                        spi::latch_change change,
                                                        net::patience until) {
    const bool sets = change.what == spi::latch_change::kind::set;
    const std::string id = spi::to_hex(change.id);
    const std::string mark = sets ? std::string() : id;
    for (int round = 0; round < latch_rounds; ++round) {
      const typename Store::latch_count known =
          co_await value_of(Store::read_count(self, path, mark, until));
      if (known.has_claims) co_return latch_conflict();
      queued_latch to{known.value, known.life, known.set_by};
      if (sets) {
        if (known.value && known.set_by == id) co_return spi::latch_state{known.value};
        if (known.value && *known.value > 0) {
          co_return failure(errc::conflict,
                            "the latch is set, its count is " + std::to_string(*known.value));
        }
        to = {change.count, change.life, id};
      } else {
        if (!known.value) co_return failure(errc::not_held, "the latch is unset");
        if (known.marked) co_return spi::latch_state{known.value};  // counted before
        to.value = *known.value - std::min(*known.value, change.count);
        to.mark = mark;
      }
      const bool done = co_await value_of(Store::write_count(self, path, known, to, until));
      if (done) co_return spi::latch_state{to.value};
    }
    co_return failure(errc::unavailable,
                      self->caps_.engine + ": too many concurrent latch updates");
  }

  static task<result<spi::latch_state>> do_read_latch(self_ptr self, std::string path,
                                                      net::patience until) {
    const std::string none;
    const typename Store::latch_count known =
        co_await value_of(Store::read_count(self, path, none, until));
    if (known.has_claims) co_return latch_conflict();
    co_return spi::latch_state{known.value};
  }

  static tl::unexpected<error> latch_conflict() {
    return failure(errc::name_conflict, "the name is in use as a lock or semaphore");
  }
};

}  // namespace holdfast::stores
