// Renewals: one call per connection for all claims whose names go over it.
#include "stores/postgresql/calls.hpp"
#include "stores/postgresql/postgresql_store.hpp"
#include "stores/sql/names.hpp"

#include <algorithm>
#include <climits>
#include <map>
#include <utility>

namespace holdfast::postgresql {

namespace {

std::int64_t limited(std::uint32_t number) { return std::min<std::uint32_t>(number, INT_MAX); }

}  // namespace

arguments attempt_arguments(const std::string& key, const spi::claim& claim,
                            const std::string& process) {
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim.id)).text(spi::public_id(claim.id)).text(process);
  with.number(static_cast<std::int64_t>(claim.mode));
  with.number(limited(claim.permits)).number(limited(claim.max));
  with.flag(claim.fair).flag(claim.queued).flag(claim.renewed);
  with.number(sql::microseconds(claim.ttl)).number(sql::microseconds(claim.lock_delay));
  with.number(limited(std::max(claim.fence_block, 1U))).bytes(claim.payload);
  return with;
}

// Several calls, one answer: of claims whose call failed nothing is known.
struct postgresql_store::batch {
  std::mutex mutex;
  std::vector<spi::claim_ptr> claims;
  std::vector<spi::renewal> answers;  // guarded by mutex
  std::size_t open = 0;               // guarded by mutex
  std::size_t failed = 0;             // guarded by mutex
  std::size_t parts = 0;
  error why;                                        // guarded by mutex
  spi::completion<std::vector<spi::renewal>> done;  // guarded by mutex

  void take(const std::vector<std::size_t>& part, result<std::vector<spi::renewal>> given) {
    spi::completion<std::vector<spi::renewal>> finish;
    bool none = false;
    {
      const std::lock_guard lock(mutex);
      if (given) {
        for (std::size_t i = 0; i < part.size(); ++i) answers[part[i]] = (*given)[i];
      } else {
        ++failed;
        why = given.error();
      }
      if (--open > 0) return;
      none = failed == parts;
      finish = std::move(done);
    }
    if (none) return finish(tl::unexpected(why));
    finish(std::move(answers));
  }
};

void postgresql_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                             spi::completion<std::vector<spi::renewal>> done) {
  if (!usable()) return done(failure(errc::cancelled, "postgresql: closed or forked"));
  if (claims.empty()) return done(std::vector<spi::renewal>{});
  // By connection, and there by key: two batches that wait for each other's rows would be a deadlock.
  std::map<connection*, std::map<std::pair<std::string, std::size_t>, std::size_t>> roads;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    std::string key = sql::key_of(claims[i]->resource);
    connection* over = &road(key);
    roads[over].emplace(std::pair(std::move(key), i), i);
  }
  auto whole = std::make_shared<batch>();
  whole->answers.resize(claims.size());
  whole->claims = std::move(claims);
  whole->open = whole->parts = roads.size();
  whole->done = std::move(done);
  for (const auto& [over, sorted] : roads) {
    std::vector<std::size_t> part;
    part.reserve(sorted.size());
    for (const auto& [key, index] : sorted) part.push_back(index);
    renew_part(whole, std::move(part), *over, context);
  }
}

void postgresql_store::renew_part(const std::shared_ptr<batch>& whole,
                                  std::vector<std::size_t> part, connection& over,
                                  const spi::op_context& context) {
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const std::size_t index : part) {
    keys.push_back(sql::key_of(whole->claims[index]->resource));
    ids.emplace_back(sql::bytes_of(whole->claims[index]->id));
  }
  arguments with;
  with.list(keys).list(ids).text(hearing_->process());
  over.send(statement::renew, std::move(with), context.deadline,
            [whole, part = std::move(part)](result<sql::rows> rows) {
              if (!rows) return whole->take(part, tl::unexpected(std::move(rows.error())));
              whole->take(part, sql::to_renewals(*rows, part.size()));
            });
}

}  // namespace holdfast::postgresql
