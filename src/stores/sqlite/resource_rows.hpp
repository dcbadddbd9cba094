// The rows of one resource, read and written: its own row, who holds, who waits. Keeps no sums and knows
// no grant rule: ledgers::book does.
//
// Within a write transaction only (find, holder, waiter, all_holders and line also within a read
// one). Throws `failed`.
#pragma once

#include "stores/sqlite/database.hpp"
#include "stores/sqlite/rows.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sqlite {

class resource_rows {
 public:
  explicit resource_rows(statements& of) : statements_(of) {}

  [[nodiscard]] std::optional<resource_row> find(std::string_view key);
  // Makes the resource's row. Its fences start above all that were ever given.
  [[nodiscard]] resource_row make(std::string_view key, spi::server_time now);
  // Writes the resource's row if it was changed.
  void save(resource_row& at);

  // The fast path, for a lock that nobody else touched since this store last wrote it. First
  // look(): the row as this store wrote it last, if it was plain; nullptr: not known. Then recall()
  // and exchange(), outside a transaction: in one of its own writes the row if the database still
  // has what was recalled. False: it has not, and nothing has happened.
  [[nodiscard]] const resource_row* look(std::string_view key);
  [[nodiscard]] resource_row recall(std::string_view key);
  bool exchange(resource_row at);

  // The claim at a place, if it is this one.
  [[nodiscard]] std::optional<claim_row> holder(const resource_row& at, std::int64_t place,
                                                const spi::claim_id& id);
  [[nodiscard]] std::optional<claim_row> waiter(const resource_row& at, std::int64_t place,
                                                const spi::claim_id& id);

  [[nodiscard]] std::vector<claim_row> all_holders(const resource_row& at, std::size_t limit);
  // Whose the holds are; of detached ones nobody's.
  [[nodiscard]] std::vector<std::int64_t> holding_clients(const resource_row& at,
                                                          std::size_t limit);
  void add_holder(resource_row& at, const claim_row& row);
  void remove_holder(resource_row& at, const claim_row& row);
  // Another at the same place.
  void change_holder(resource_row& at, const claim_row& now);

  // The next in line behind a place, the last before it; valid until the next call.
  [[nodiscard]] const claim_row* after(const resource_row& at, std::int64_t place);
  [[nodiscard]] const claim_row* before(const resource_row& at, std::int64_t place);
  [[nodiscard]] std::vector<claim_row> line(const resource_row& at, std::size_t limit);
  [[nodiscard]] std::vector<claim_row> waits_of(const resource_row& at, std::int64_t client);
  // Behind all who wait.
  void add_waiter(resource_row& at, const claim_row& row);
  void remove_waiter(resource_row& at, const claim_row& row);

  // Resources of which only the fence is left are forgotten little by little as new ones come, so
  // that the table follows the names in use and not the names ever used.
  static constexpr std::int64_t forgetting_step = 64;
  // Of those who wait, at most so many are in the resource's own row, and only while that and the
  // name take no more than so many bytes: longer rows do not fit into one page.
  static constexpr std::size_t line_limit = 4;
  static constexpr std::size_t row_limit = 900;
  // Names whose row is known by number.
  static constexpr std::size_t remembered_limit = 10'000;
  // Where somebody else had touched it, the fast path is not tried this many times.
  static constexpr int detours = 8;

 private:
  struct memory {
    std::int64_t id = 0;
    std::optional<resource_row> row;
    int detours = 0;
  };

  std::optional<resource_row> load(std::int64_t id, std::string_view key);
  memory& remember(std::string_view key, std::int64_t id);
  std::optional<claim_row> at_place(const resource_row& at, standing where, std::int64_t place,
                                    const spi::claim_id& id);
  std::vector<claim_row> all(const resource_row& at, standing where, std::size_t limit);
  void insert(const resource_row& at, standing where, const claim_row& row);
  void erase(const resource_row& at, standing where, std::int64_t place);
  static bool has_room(const resource_row& at, const claim_row& waiter);
  void refill(resource_row& at);
  void forget_some(spi::server_time now);

  statements& statements_;
  std::int64_t forgotten_up_to_ = 0;
  claim_row passing_;                                 // what after() and before() have read
  std::map<std::string, memory, std::less<>> known_;  // hints: each is checked
};

}  // namespace holdfast::sqlite
