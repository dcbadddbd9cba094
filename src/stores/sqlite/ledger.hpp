// The grant rules on the database's rows: what is decided inside one write transaction. The same
// rules as the memory store's ledger, which is their reference, but for how a hold ends: here a
// renewed one, once it was taken up, lasts as long as its client lives. A waiter's last word is its
// client's, which stands in the client's sign of life: thousands who wait write no row for it.
//
// Invariants:
//  1. A resource has one exclusive holder and nobody else, or any number of shared ones, or permit
//     holders whose permits sum up to at most max.
//  2. Fences of a resource grow from grant to grant, whatever ends or is forgotten.
//  3. Nobody is granted before an earlier one that waits, lives and was heard since the last offer
//     that nobody took up was made; except that an unfair newcomer may take what is free while only
//     unfair ones wait (and no reader passes a waiting writer).
//  4. Only the head of the line and its neighbour are ever read, so that a long line costs what a
//     short one costs; and those before the first that is not silent, where an offer ran out.
//  5. The head of the line always knows whom it waits for: where that changes without a grant, it is
//     told to ask again. Its store watches them, so that their death is noticed at once.
//
// Not thread-safe; inside a transaction; throws `failed`, and then nothing has happened.
#pragma once

#include "stores/sqlite/effects.hpp"
#include "stores/sqlite/resource_rows.hpp"
#include "stores/sqlite/rows.hpp"
#include "stores/sqlite/statements.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::sqlite {

// The named limits of the rules.
struct ledger_limits {
  // Among unfair claims: a lone waiter may be overtaken this long before it is handed the lock.
  static constexpr duration hand_over_after = std::chrono::milliseconds(1);
  // How soon a waiter looks again that hears nothing.
  static constexpr duration recheck = std::chrono::seconds(1);
  // What is handed over is an offer for so long (at most its ttl), until it is taken up.
  static constexpr duration offer = std::chrono::seconds(2);
  // Who was not heard for so long does not look after those who hold: the next in line does.
  static constexpr duration absent = std::chrono::seconds(3);
  // Grants, and dead waiters passed over, in one transaction; the next one goes on.
  static constexpr std::size_t promote_limit = 64;
  // Holders that are told that somebody waits, and clients that one waiter watches.
  static constexpr std::size_t told_limit = 64;
  // Clients of holders that are looked at when one of them is dead.
  static constexpr std::size_t holder_limit = 10'000;
  // Claims on one name, waiting or holding: then overloaded.
  static constexpr std::uint32_t claim_limit = 1'000'000;
};

class ledger {
 public:
  explicit ledger(statements& of) : statements_(of), resource_rows_(of) {}

  // Granted, or blocked and queued (not queued where claim.queued is false). `place`: where this
  // client knows the claim to be, 0 if nowhere; updated.
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
  // Gives a hold to another claim, with the same fence. `place`: where it is then. not_held: neither holds.
  result<spi::granted> transfer(const moment& step, const spi::claim_id& from, const spi::claim& to,
                                std::int64_t& place);
  // Where a claim holds whose place no client knows; 0: nowhere.
  std::int64_t place_of_holder(const spi::resource_id& resource, const spi::claim_id& id);
  std::vector<spi::holder> revoke(const moment& step, const spi::resource_id& resource,
                                  spi::revocation how, const std::string& claim);
  // Takes the dead off a resource and lets in who is next.
  void settle(const moment& step, std::string_view key);

  // Everything of a dead client, on all resources. Reads every claim: for who opens, not for the
  // way of a lock.
  void purge(const moment& step, std::int64_t client);

  result<spi::latch_state> change_latch(const moment& step, const spi::resource_id& resource,
                                        const spi::latch_change& change);
  result<spi::latch_state> read_latch(const moment& step, const spi::resource_id& resource);

  void observe(const moment& step, std::string_view key);
  void ignore(const moment& step, std::string_view key);

  // Read transactions.
  std::vector<claim_row> holders_of(const spi::resource_id& resource);
  std::vector<claim_row> line_of(const spi::resource_id& resource);
  instant blocked_until(const spi::resource_id& resource);  // 0: not at all
  std::vector<resource_row> named(const std::string& space, const std::string& prefix);

 private:
  // ledger.cpp
  spi::outcome place_claim(const moment& step, resource_row& at, const spi::claim& claim,
                           std::int64_t& place);
  spi::outcome stand(const moment& step, resource_row& at, const claim_row& row, standing where);
  void save(const moment& step, resource_row& at);
  std::optional<claim_row> holder_with(const resource_row& at, const spi::claim_id& id);

  // promote.cpp
  void promote(const moment& step, resource_row& at);
  void drop_ended(const moment& step, resource_row& at);
  bool drop_dead_holders(const moment& step, resource_row& at);
  void end_abnormally(const moment& step, resource_row& at, const claim_row& row, instant since);
  bool free_for(const moment& step, resource_row& at, const claim_row& row);
  std::optional<claim_row> next_in_line(const moment& step, resource_row& at);
  bool may_pass(const moment& step, const resource_row& at, const spi::claim& newcomer);
  instant last_word(const moment& step, const claim_row& waiter);
  bool silent(const moment& step, const resource_row& at, const claim_row& waiter);
  bool absent(const moment& step, const claim_row& waiter);
  void complete(const moment& step, resource_row& at, claim_row& row);
  claim_row grant(const moment& step, resource_row& at, claim_row row);
  void wake_head(const moment& step, resource_row& at);

  // answer.cpp
  static spi::granted granted_to(const moment& step, const resource_row& at, const claim_row& row);
  spi::blocked blocked_at(const moment& step, resource_row& at, const claim_row& row, bool queued);
  void tell_wanted(const moment& step, resource_row& at);
  // `kept`: how long nobody else gets it; zero: it is free now.
  static void tell_gone(const moment& step, const claim_row& row, const char* why, duration kept);
  static void note(const moment& step, const resource_row& at, spi::event_kind what,
                   const claim_row& row, bool fenced);
  void address_news(const moment& step, resource_row& at);

  // latches.cpp
  void end_latch(const moment& step, resource_row& at);
  result<spi::latch_state> count_latch(const moment& step, resource_row& at,
                                       const spi::latch_change& change);
  bool repeated(const moment& step, const resource_row& at, const spi::claim_id& id);

  statements& statements_;
  resource_rows resource_rows_;
};

}  // namespace holdfast::sqlite
