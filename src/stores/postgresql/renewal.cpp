// What a renewal asks, and what it is answered.
#include "stores/postgresql/engine.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/names.hpp"

namespace holdfast::postgresql {

arguments engine::renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                    const std::string& process) {
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const spi::claim_ptr& each : claims) {
    keys.push_back(sql::key_of(each->resource));
    ids.emplace_back(sql::bytes_of(each->id));
  }
  arguments with;
  with.list(keys).list(ids).text(process);
  return with;
}

result<std::vector<spi::renewal>> engine::to_renewals(const sql::rows& said,
                                                      const std::vector<spi::claim_ptr>& claims) {
  return sql::to_renewals(said, claims.size());
}

}  // namespace holdfast::postgresql
