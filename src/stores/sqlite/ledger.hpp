// The rules of ledgers::book on the database's rows: what is decided inside one write transaction. How a
// hold ends is the embedded store's own: a renewed one, once it was taken up, lasts as long as its client
// lives. A waiter's last word is its client's, which stands in the client's sign of life: thousands who
// wait write no row for it.
//
// The head of the line always knows whom it waits for. Its store watches them, so that their death is
// noticed at once.
//
// Not thread-safe; inside a transaction; throws `failed`, and then nothing has happened. Every moment's
// effects are sqlite::effects.
#pragma once

#include "stores/ledger/book.hpp"
#include "stores/ledger/records.hpp"
#include "stores/sqlite/database.hpp"
#include "stores/sqlite/location.hpp"
#include "stores/sqlite/resource_rows.hpp"
#include "stores/sqlite/rows.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sqlite {

using ledgers::moment;
using ledgers::push;

// Of one resource.
struct news {
  std::string key;
  std::vector<spi::store_event> events;
  bool latch_changed = false;
  std::vector<std::int64_t> observers;
};

// What one transaction causes beside its answer: messages to other claims, news for observers.
// Delivered in order, after the commit, when nothing is held any more.
struct effects : ledgers::effects {
  std::vector<sqlite::news> news;
  // Clients that the claim which was attempted waits for: it wants to know when they die.
  std::vector<std::int64_t> blockers;
};

// The named limits of what is this store's own.
struct ledger_limits {
  // How soon a waiter looks again that hears nothing.
  static constexpr duration recheck = std::chrono::seconds(1);
  // Who was not heard for so long does not look after those who hold: the next in line does.
  static constexpr duration absent = std::chrono::seconds(3);
  // Holders that are told that somebody waits, and clients that one waiter watches.
  static constexpr std::size_t told_limit = 64;
  // Clients of holders that are looked at when one of them is dead.
  static constexpr std::size_t holder_limit = 10'000;
  // Claims on one name, waiting or holding: then overloaded.
  static constexpr std::size_t claim_limit = 1'000'000;
};

class ledger : public ledgers::book {
 public:
  explicit ledger(statements& of);

  // Where the clients' last words are. Not set: nobody is asked for one.
  void look_beside(const folder* at) noexcept { beside_ = at; }

  // `place`: where this client knows the claim to be, 0 if nowhere; updated.
  result<spi::outcome> attempt(const moment& step, const spi::claim& claim, std::int64_t& place);
  spi::departure leave(const moment& step, const spi::claim& claim, std::int64_t place);
  // The same for a lock that only this store uses, as far as it remembers, and that nobody waits
  // for: one statement, which is its own transaction, instead of four. Outside a transaction.
  // Nothing: it is not so, or not any more; nothing has happened then.
  std::optional<spi::granted> take_at_once(const moment& step, const spi::claim& claim,
                                           std::int64_t& place);
  std::optional<spi::departure> give_at_once(const moment& step, const spi::claim& claim,
                                             std::int64_t place);
  // Only looks. A read transaction is enough. `waiting` means that an attempt may do more, unless
  // `behind` is set: then an exclusive holder keeps everybody out, and the claim is not the first
  // in line but waits behind one of that client's.
  spi::renewal look(const moment& step, const spi::claim& claim, std::int64_t place,
                    std::optional<std::int64_t>& behind);
  // The holder has heard of its grant: an offer becomes a hold. Nothing: it is over.
  std::optional<spi::granted> take_up(const moment& step, const spi::claim& claim,
                                      std::int64_t place);
  result<spi::granted> change(const moment& step, const spi::claim& claim, std::int64_t place,
                              spi::mode to);
  // `place`: where it is then.
  result<spi::granted> transfer(const moment& step, const spi::claim_id& from, const spi::claim& to,
                                std::int64_t& place);
  using book::change_latch;
  using book::revoke;
  // Read transactions.
  result<spi::latch_state> read_latch(const moment& step, const spi::resource_id& resource);
  std::vector<claim_row> holders_of(const spi::resource_id& resource);
  std::vector<claim_row> line_of(const spi::resource_id& resource);
  spi::server_time blocked_until(const spi::resource_id& resource);
  std::vector<resource_row> named(const std::string& space, const std::string& prefix);

  // Takes the dead off a resource and lets in who is next.
  void settle(const moment& step, std::string_view key);
  // Everything of a dead client, on all resources. Reads every claim: for who opens, not for the
  // way of a lock.
  void purge(const moment& step, std::int64_t client);

  void observe(const moment& step, std::string_view key);
  void ignore(const moment& step, std::string_view key);

 private:
  resource_row* load(std::string_view key);
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
  resource_rows resource_rows_;
  const folder* beside_ = nullptr;
  std::optional<resource_row> loaded_;  // the resource that the verb is about
};

}  // namespace holdfast::sqlite
