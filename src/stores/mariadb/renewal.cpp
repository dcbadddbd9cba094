// Renewals: few calls per connection for all claims whose names go over it.
#include "stores/mariadb/mariadb_store.hpp"
#include "stores/sql/names.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace holdfast::mariadb {

namespace {

// How many claims one call renews, in one transaction.
constexpr std::size_t batch_limit = 256;

}  // namespace

// Several calls, one answer: of claims whose call failed nothing is known.
struct mariadb_store::batch {
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

void mariadb_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                          spi::completion<std::vector<spi::renewal>> done) {
  if (!usable()) return done(failure(errc::cancelled, "mariadb: closed or forked"));
  if (claims.empty()) return done(std::vector<spi::renewal>{});
  // By connection, and there by key: two batches that wait for each other's rows would be a deadlock.
  std::map<connection*, std::map<std::pair<std::string, std::size_t>, std::size_t>> roads;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    std::string key = sql::key_of(claims[i]->resource);
    connection* over = &road(key);
    roads[over].emplace(std::pair(std::move(key), i), i);
  }
  std::vector<std::pair<connection*, std::vector<std::size_t>>> parts;
  for (const auto& [over, sorted] : roads) {
    for (const auto& [key, index] : sorted) {
      const bool begins =
          parts.empty() || parts.back().first != over || parts.back().second.size() >= batch_limit;
      if (begins) parts.push_back({over, {}});
      parts.back().second.push_back(index);
    }
  }
  auto whole = std::make_shared<batch>();
  whole->answers.resize(claims.size());
  whole->claims = std::move(claims);
  whole->open = whole->parts = parts.size();
  whole->done = std::move(done);
  for (auto& [over, part] : parts) renew_part(whole, std::move(part), *over, context);
}

void mariadb_store::renew_part(const std::shared_ptr<batch>& whole, std::vector<std::size_t> part,
                               connection& over, const spi::op_context& context) {
  std::string packed;
  for (const std::size_t index : part) {
    pack(packed, sql::key_of(whole->claims[index]->resource));
    packed += sql::bytes_of(whole->claims[index]->id);
  }
  arguments with;
  with.bytes(packed).bytes(hearing_->process());
  over.send(statement::renew, with, context.deadline,
            [whole, part = std::move(part)](result<sql::rows> rows) {
              if (!rows) return whole->take(part, tl::unexpected(std::move(rows.error())));
              std::map<std::string, std::string> lines;
              for (const std::string& row : *rows) {
                const std::size_t space = std::min(row.find(' '), row.size());
                lines[row.substr(0, space)] = row.substr(std::min(space + 1, row.size()));
              }
              sql::rows sorted;
              for (const std::size_t index : part) {
                sorted.push_back(lines[sql::to_hex(sql::bytes_of(whole->claims[index]->id))]);
              }
              whole->take(part, sql::to_renewals(sorted, part.size()));
            });
}

}  // namespace holdfast::mariadb
