// The ledger of the memory store and of the simulator's server: the rules of ledgers::book on
// tables in memory. The other engines are compared with it.
//
// Pure and deterministic: the time is an argument, and equal calls give equal answers. Not
// thread-safe. Copyable: a copy is a snapshot.
#pragma once

#include "stores/ledger/book.hpp"
#include "stores/memory/expiring_map.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace holdfast::memory {

using ledgers::after;
using ledgers::effects;
using ledgers::ledger_event;
using ledgers::on_leave;
using ledgers::process_id;
using ledgers::push;
using ledgers::rules;

// One resource: its holders, by id; its waiters, by place, which is their order of arrival.
struct resource : ledgers::resource {
  explicit resource(spi::resource_id name) : id(std::move(name)) {}

  spi::resource_id id;
  expiring_map<spi::claim_id, ledgers::entry> held;
  std::size_t untold = 0;  // of those who hold
  expiring_map<std::int64_t, ledgers::entry> line;
  std::map<spi::claim_id, std::int64_t> places;
  std::int64_t last_place = 0;
  std::optional<spi::claim_id> told_free;  // only one is notified at a time
  std::uint32_t latch_count = 0;
  expiring_map<spi::claim_id, std::monostate> latch_changes;
};

class ledger : public ledgers::book {
 public:
  // The first fence of a new resource is fence_floor + 1.
  explicit ledger(memory::rules rules = {}, reachability reachable = {},
                  std::uint64_t fence_floor = 0);

  // The verbs: see ledgers::book.
  result<spi::outcome> attempt(spi::server_time now, const spi::claim_ptr& claim,
                               process_id process, std::optional<spi::server_time> not_after,
                               effects& out);
  spi::departure leave(spi::server_time now, const spi::claim& claim, process_id process,
                       on_leave then, effects& out);
  spi::renewal renew(spi::server_time now, const spi::claim& claim, process_id process,
                     effects& out);
  result<spi::granted> change(spi::server_time now, const spi::claim& claim, spi::mode to,
                              process_id process, effects& out);
  result<spi::granted> transfer(spi::server_time now, const spi::claim_id& from,
                                const spi::claim_ptr& to, process_id process, on_leave then,
                                effects& out);
  result<spi::granted> raise(spi::server_time now, const spi::claim& claim, fence_token fence,
                             process_id process, effects& out);
  std::vector<spi::holder> revoke(spi::server_time now, const spi::resource_id& resource,
                                  spi::revocation how, const std::string& claim, effects& out);
  result<spi::latch_state> change_latch(spi::server_time now, const spi::resource_id& resource,
                                        const spi::latch_change& change, effects& out);
  result<spi::latch_state> read_latch(spi::server_time now, const spi::resource_id& resource,
                                      effects& out);

  // Since when this ledger keeps its state; else since the first vote that it was asked for.
  void born(spi::server_time when) noexcept { born_ = when; }

  spi::resource_state inspect(spi::server_time now, const spi::resource_id& resource, effects& out);
  std::vector<spi::resource_summary> list(spi::server_time now, const std::string& space,
                                          const std::string& prefix, effects& out);

  // Promotes every resource: what a sweep or a leak check does.
  void settle(spi::server_time now, effects& out);

  // No claim is left, waiting or held. Fences, latches and tombstones may be.
  [[nodiscard]] bool empty() const;
  [[nodiscard]] std::size_t tombstones() const noexcept { return tombstones_.size(); }

 private:
  void sweep(spi::server_time now);

  ledgers::resource* find(const spi::resource_id& id) override;
  ledgers::resource& make(const spi::resource_id& id, spi::server_time now) override;
  [[nodiscard]] spi::resource_id id_of(const ledgers::resource& at) const override;

  std::optional<ledgers::entry> holder(const ledgers::moment& step, ledgers::resource& at,
                                       const spi::claim_id& id) override;
  std::optional<ledgers::entry> waiter(const ledgers::moment& step, ledgers::resource& at,
                                       const spi::claim_id& id) override;
  std::vector<ledgers::entry> holders(const ledgers::resource& at, std::size_t limit) override;
  std::vector<ledgers::entry> ended_holders(ledgers::resource& at, spi::server_time now) override;
  std::vector<ledgers::entry> ended_waiters(ledgers::resource& at, spi::server_time now) override;
  std::vector<ledgers::entry> holders_to_tell(ledgers::resource& at) override;
  void mark_told(ledgers::resource& at, const ledgers::entry& row) override;
  const ledgers::entry* next_waiter(ledgers::resource& at, std::int64_t place) override;
  const ledgers::entry* previous_waiter(ledgers::resource& at, std::int64_t place) override;
  std::int64_t next_place(ledgers::resource& at) override;
  void put_holder(ledgers::resource& at, const ledgers::entry& row) override;
  void erase_holder(ledgers::resource& at, const ledgers::entry& row) override;
  void replace_holder(ledgers::resource& at, const ledgers::entry& before,
                      const ledgers::entry& now) override;
  void put_waiter(ledgers::resource& at, const ledgers::entry& row) override;
  void erase_waiter(ledgers::resource& at, const ledgers::entry& row) override;
  void refresh_waiter(ledgers::resource& at, const ledgers::entry& row) override;
  bool tell_free(ledgers::resource& at, const ledgers::entry& waiting) override;
  void taken(ledgers::resource& at) override;

  std::uint32_t latch_count(const ledgers::resource& at) override;
  void set_latch(ledgers::resource& at, std::uint32_t count, duration life) override;
  void erase_latch(ledgers::resource& at) override;
  bool latch_counted(const ledgers::resource& at, const spi::claim_id& id,
                     spi::server_time now) override;
  void remember_latch_change(ledgers::resource& at, const spi::claim_id& id,
                             spi::server_time until) override;
  void end_latch_count(ledgers::resource& at, spi::server_time until) override;
  void forget_latch_changes(ledgers::resource& at, spi::server_time now) override;

  void remember(const spi::claim_id& id, spi::server_time until) override;
  bool left_before(const spi::claim_id& id) override { return tombstones_.contains(id); }
  spi::server_time last_word(const ledgers::moment&, const ledgers::entry& waiting) override {
    return waiting.heard;
  }
  duration recheck_after(const ledgers::moment& step, ledgers::resource& at,
                         const ledgers::entry& row, bool queued) override;

  std::uint64_t first_fence_after_;
  std::size_t next_sweep_;
  std::map<spi::resource_id, resource> resources_;
  expiring_map<spi::claim_id, std::monostate> tombstones_;
};

}  // namespace holdfast::memory
