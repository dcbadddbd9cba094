// The rules of ledgers::book on the database's rows: decided inside one write transaction. How a
// hold ends is specific to the embedded store: a renewed one, once taken up, lasts as long as its
// client lives. A waiter's last sign of life is its client's, which is stored in the client's life
// file: thousands of waiters write no row for it.
//
// The head of the queue always knows whom it waits for. Its store watches them, so that their
// death is noticed at once.
//
// Not thread-safe; inside a transaction; throws `failed`, and then nothing has happened. Every moment's
// effects are sqlite::effects.
#pragma once

#include "stores/ledger/book.hpp"
#include "stores/ledger/records.hpp"
#include "stores/sqlite/database.hpp"
#include "stores/sqlite/location.hpp"
#include "stores/sqlite/rows.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sqlite {

using ledgers::moment;
using ledgers::push;

// About a claim that is at this place, as far as this client knows; updated.
inline moment with_place(const moment& step, std::int64_t& place) {
  moment placed = step;
  placed.place = &place;
  return placed;
}

// Of one resource.
struct news {
  std::string key;
  std::vector<spi::store_event> events;
  bool latch_changed = false;
  std::vector<std::int64_t> observers;
};

// The effects of one transaction beside its answer: messages to other claims, news for observers.
// Delivered in order, after the commit, when no lock is held any more.
struct effects : ledgers::effects {
  std::vector<sqlite::news> news;
  // Clients that the attempted claim waits for: it must know when they die.
  std::vector<std::int64_t> blockers;
};

// The limits that are specific to this store.
struct ledger_limits {
  // How soon a waiter looks again without a notification.
  static constexpr duration recheck = std::chrono::seconds(1);
  // A waiter that was silent for this long is assumed not to watch the holders:
  // the next in the queue does.
  static constexpr duration absent = std::chrono::seconds(3);
  // Holders that are notified of a waiter, and clients that one waiter watches.
  static constexpr std::size_t told_limit = 64;
  // Clients of holders that are looked at when one of them is dead.
  static constexpr std::size_t holder_limit = 10'000;
  // Claims on one name, waiting or holding: then overloaded.
  static constexpr std::size_t claim_limit = 1'000'000;

  // Resources of which only the fence is left are forgotten gradually as new ones come, so that the
  // table grows with the names in use and not with all names ever used.
  static constexpr std::int64_t forgetting_step = 64;
  // So many are kept: a name that is used again soon then has its row.
  static constexpr std::int64_t kept_resources = 1'000;
  // At most so many waiters are in the resource's own row, and only while that and the name take no
  // more than so many bytes: longer rows do not fit into one page.
  static constexpr std::size_t line_limit = 4;
  static constexpr std::size_t row_limit = 900;
  // Names whose row is remembered.
  static constexpr std::size_t remembered_limit = 10'000;
};

// What operators can ask about a resource. Dead clients are included.
struct contents {
  std::string name;
  std::vector<claim_row> holders;
  std::vector<claim_row> line;
  spi::server_time blocked_until = ledgers::long_ago;
};

class ledger : public ledgers::book {
 public:
  explicit ledger(statements& of);

  // Where the clients' last signs of life are stored. Not set: they are not read.
  void look_beside(const folder* at) noexcept { beside_ = at; }

  // With with_place().
  using book::attempt;
  using book::change;
  using book::change_latch;
  using book::leave;
  using book::revoke;
  using book::transfer;
  // attempt() and leave() for a lock that, as far as this store remembers, only it uses, and that
  // nobody waits for: one statement, which is its own transaction, instead of four. Outside a
  // transaction. Nothing: that is not, or no longer, the case, and nothing has happened.
  std::optional<spi::granted> fast_attempt(const moment& step, const spi::claim& claim,
                                           std::int64_t& place);
  std::optional<spi::departure> fast_leave(const moment& step, const spi::claim& claim,
                                           std::int64_t place);
  // Whether it holds or waits.
  bool has(const moment& step, const spi::claim& claim, std::int64_t place);
  // Only looks. A read transaction is enough. `waiting` means that an attempt may do more, unless
  // `behind` is set: then an exclusive holder keeps everybody out, and the claim is not the first
  // in the queue but waits behind a claim of that client.
  spi::renewal look(const moment& step, const spi::claim& claim, std::int64_t place,
                    std::optional<std::int64_t>& behind);
  // The holder knows of its grant: an offer becomes a hold. Nothing: it is over.
  std::optional<spi::granted> take_up(const moment& step, const spi::claim& claim,
                                      std::int64_t place);
  // Read transactions.
  result<spi::latch_state> read_latch(const moment& step, const spi::resource_id& resource);
  contents look_at(const spi::resource_id& resource);
  std::vector<contents> look_at_all(const std::string& space, const std::string& prefix);

  // Removes dead clients from a resource and grants it to the next.
  void settle(const moment& step, std::string_view key);
  // Removes everything of dead clients, on all resources. Reads every claim: used at
  // opening, never while locking.
  void purge(const moment& step);
  // For a client without claims.
  void forget_client(std::int64_t client);
  // Removes all claims from all resources, whose next fences are greater than this.
  void start_boot(std::uint64_t floor);

  void observe(const moment& step, std::string_view key);
  void ignore(const moment& step, std::string_view key);

 private:
  // Rows as this store last wrote them, if they were plain: hints, which are verified. A row that
  // is being changed is taken out first: whatever happens to it, it is no longer what was stored.
  using remembered_rows = std::map<std::string, resource_row, std::less<>>;

  // Outside a transaction: writes the row if the database still has what was remembered, and
  // remembers it again. False: it does not, and nothing has happened.
  bool exchange(remembered_rows::node_type changed);

  resource_row* load(std::string_view key);
  void write(resource_row& at);
  [[nodiscard]] bool beyond_kept();
  void forget_some(spi::server_time now);
  std::vector<resource_row> named(const std::string& space, const std::string& prefix);
  contents contents_of(const resource_row& at);

  // Claims that are rows of their own.
  std::optional<claim_row> at_place(const resource_row& at, standing where, std::int64_t place,
                                    const spi::claim_id& id);
  std::vector<claim_row> all(const resource_row& at, standing where, std::size_t limit);
  void insert(const resource_row& at, standing where, const claim_row& row);
  void erase(const resource_row& at, standing where, std::int64_t place);
  void refill(resource_row& at);
  std::vector<claim_row> line(const resource_row& at);
  // The clients that own the holds; `nobody` for detached ones.
  std::vector<std::int64_t> holding_clients(const resource_row& at, std::size_t limit);

  void address_news(const moment& step, resource_row& at);
  bool absent(const moment& step, const claim_row& waiting);

  ledgers::resource* find(const spi::resource_id& id) override;
  ledgers::resource& make(const spi::resource_id& id, spi::server_time now) override;
  void save(const moment& step, ledgers::resource& at) override;
  [[nodiscard]] spi::resource_id id_of(const ledgers::resource& at) const override;

  std::optional<claim_row> holder(const moment& step, ledgers::resource& at,
                                  const spi::claim_id& id) override;
  std::optional<claim_row> waiter(const moment& step, ledgers::resource& at,
                                  const spi::claim_id& id) override;
  std::vector<claim_row> holders(const ledgers::resource& at, std::size_t limit) override;
  std::vector<claim_row> ended_holders(ledgers::resource& at, spi::server_time now) override;
  std::vector<claim_row> holders_to_tell(ledgers::resource& at) override;
  const claim_row* next_waiter(ledgers::resource& at, std::int64_t place) override;
  const claim_row* previous_waiter(ledgers::resource& at, std::int64_t place) override;
  std::int64_t next_place(ledgers::resource& at) override;
  void put_holder(ledgers::resource& at, const claim_row& row) override;
  void erase_holder(ledgers::resource& at, const claim_row& row) override;
  void replace_holder(ledgers::resource& at, const claim_row& before,
                      const claim_row& now) override;
  void put_waiter(ledgers::resource& at, const claim_row& row) override;
  void erase_waiter(ledgers::resource& at, const claim_row& row) override;
  bool tell_free(ledgers::resource& at, const claim_row& waiting) override;
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

  spi::server_time last_word(const moment& step, const claim_row& waiting) override;
  duration recheck_after(const moment& step, ledgers::resource& at, const claim_row& row,
                         bool queued) override;
  void watch_holders(const moment& step, ledgers::resource& at) override;
  [[nodiscard]] std::uint64_t fence_floor() const override { return wall_clock_microseconds(); }

  statements& statements_;
  const folder* beside_ = nullptr;
  std::optional<resource_row> loaded_;  // the resource that the verb is about
  claim_row passing_;                   // what next_waiter() and previous_waiter() have read
  remembered_rows remembered_;
  std::int64_t forgotten_up_to_ = 0;
};

}  // namespace holdfast::sqlite
