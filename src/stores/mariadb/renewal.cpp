// What a renewal asks, and what it is answered: a line for each claim that is there, in any order.
#include "stores/mariadb/engine.hpp"
#include "stores/sql/names.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace holdfast::mariadb {

arguments engine::renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                    const std::string& process) {
  std::string packed;
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const spi::claim_ptr& each : claims) {
    std::string key = sql::key_of(each->resource);
    pack(packed, key);
    ids.emplace_back(sql::bytes_of(each->id));
    packed += ids.back();
    if (keys.empty() || keys.back() != key) keys.push_back(std::move(key));
  }
  arguments with;
  with.bytes(packed).number(static_cast<std::int64_t>(claims.size()));
  with.numbers(keys).numbers(ids).bytes(process);
  return with;
}

result<std::vector<spi::renewal>> engine::to_renewals(const sql::rows& said,
                                                      const std::vector<spi::claim_ptr>& claims) {
  std::map<std::string, std::string> lines;
  for (const std::string& row : said) {
    const std::size_t space = std::min(row.find(' '), row.size());
    lines[row.substr(0, space)] = row.substr(std::min(space + 1, row.size()));
  }
  sql::rows sorted;
  for (const spi::claim_ptr& each : claims) {
    sorted.push_back(lines[sql::to_hex(sql::bytes_of(each->id))]);
  }
  return sql::to_renewals(sorted, claims.size());
}

}  // namespace holdfast::mariadb
