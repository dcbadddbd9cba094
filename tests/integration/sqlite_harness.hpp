// The embedded store for tests: a separate client with verbs that wait for their answer, and a
// wake-up that can be waited for.
#pragma once

#include "stores/sqlite/sqlite_store.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <condition_variable>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

using namespace std::chrono_literals;
using spi::departure;
using spi::hold_state;

// Far longer than anything takes here, even on a loaded machine with sanitizers.
inline constexpr auto generous = 60s;

class noting_wakeup : public spi::wakeup {
 public:
  void notify(std::optional<spi::granted> grant) noexcept override {
    const std::lock_guard lock(mutex_);
    if (grant) grant_ = grant;
    if (!grant) ++freed_;
    changed_.notify_all();
  }
  void wanted() noexcept override {
    const std::lock_guard lock(mutex_);
    ++wanted_;
    changed_.notify_all();
  }
  void gone(const error& why) noexcept override {
    const std::lock_guard lock(mutex_);
    gone_ = why;
    changed_.notify_all();
  }

  // Each waits until it has happened; false: not within the limit.
  bool is_granted(duration limit = generous) {
    return wait([this] { return grant_.has_value(); }, limit);
  }
  bool is_freed(duration limit = generous) {
    return wait([this] { return freed_ > 0; }, limit);
  }
  bool is_woken(duration limit = generous) {
    return wait([this] { return grant_.has_value() || freed_ > 0; }, limit);
  }
  bool is_wanted(duration limit = generous) {
    return wait([this] { return wanted_ > 0; }, limit);
  }
  bool is_gone(duration limit = generous) {
    return wait([this] { return gone_.has_value(); }, limit);
  }

  // The notifications so far.
  std::optional<spi::granted> grant() {
    const std::lock_guard lock(mutex_);
    return grant_;
  }
  std::optional<error> loss() {
    const std::lock_guard lock(mutex_);
    return gone_;
  }
  int times_freed() {
    const std::lock_guard lock(mutex_);
    return freed_;
  }
  // Forgets that it was told to ask again.
  void listen() {
    const std::lock_guard lock(mutex_);
    freed_ = 0;
  }

 private:
  template <class Condition>
  bool wait(Condition condition, duration limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<spi::granted> grant_;
  std::optional<error> gone_;
  int freed_ = 0;
  int wanted_ = 0;
};

inline bool granted(const result<spi::outcome>& answer) {
  return answer && std::holds_alternative<spi::granted>(*answer);
}
inline bool queued(const result<spi::outcome>& answer) {
  return answer && std::holds_alternative<spi::blocked>(*answer) &&
         std::get<spi::blocked>(*answer).queued;
}
inline std::uint64_t fence(const result<spi::outcome>& answer) {
  return std::get<spi::granted>(*answer).fence.value();
}

// A reactor, a store and claims on it. Throws if the store cannot be opened.
class embedded_client {
 public:
  explicit embedded_client(sqlite::open_options options)
      : reactor_(spi::make_reactor()), store_(open(reactor_, options)) {}
  explicit embedded_client(const std::string& path)
      : embedded_client(sqlite::open_options{.path = path}) {}
  embedded_client(const embedded_client&) = delete;
  embedded_client& operator=(const embedded_client&) = delete;
  ~embedded_client() {
    if (store_) store_->close();
  }

  [[nodiscard]] sqlite::sqlite_store& store() const { return *store_; }
  [[nodiscard]] spi::reactor& reactor() const { return *reactor_; }
  void close() { store_->close(); }

  [[nodiscard]] std::shared_ptr<spi::claim> claim(const std::string& name = "stock") const {
    auto made = std::make_shared<spi::claim>();
    for (auto& byte : made->id.bytes) byte = static_cast<std::uint8_t>(reactor_->random());
    made->resource.name = name;
    made->ttl = 30s;
    made->payload = "host:1:test";
    return made;
  }
  [[nodiscard]] std::shared_ptr<spi::claim> fair_claim(const std::string& name = "stock") const {
    auto made = claim(name);
    made->fair = true;
    return made;
  }

  result<spi::outcome> attempt(const spi::claim_ptr& claim, std::shared_ptr<spi::wakeup> wakeup,
                               duration limit = generous) const {
    return answer<spi::outcome>([&](auto done) {
      store_->attempt(claim, std::move(wakeup), within(limit), std::move(done));
    });
  }
  result<spi::outcome> attempt(const spi::claim_ptr& claim) const {
    return attempt(claim, std::make_shared<noting_wakeup>());
  }
  result<departure> leave(const spi::claim_ptr& claim, duration limit = generous) const {
    return answer<departure>(
        [&](auto done) { store_->leave(claim, within(limit), std::move(done)); });
  }
  spi::renewal renew(const spi::claim_ptr& claim, duration limit = generous) const {
    const auto all = answer<std::vector<spi::renewal>>(
        [&](auto done) { store_->renew({claim}, within(limit), std::move(done)); });
    return all ? all->front() : spi::renewal{};
  }
  result<spi::granted> change(const spi::claim_ptr& claim, spi::mode to) const {
    return answer<spi::granted>(
        [&](auto done) { store_->change(claim, to, within(generous), std::move(done)); });
  }
  result<std::vector<spi::holder>> revoke(spi::revocation how, const std::string& claim = {},
                                          const std::string& name = "stock") const {
    return answer<std::vector<spi::holder>>([&](auto done) {
      store_->revoke({"", name}, how, claim, within(generous), std::move(done));
    });
  }
  spi::resource_state inspect(const std::string& name = "stock") const {
    return answer<spi::resource_state>([&](auto done) {
             store_->inspect({"", name}, within(generous), std::move(done));
           })
        .value();
  }
  std::vector<spi::resource_summary> list(const std::string& prefix = {},
                                          const std::string& space = {}) const {
    return answer<std::vector<spi::resource_summary>>(
               [&](auto done) { store_->list(space, prefix, within(generous), std::move(done)); })
        .value();
  }
  result<spi::latch_state> set_latch(const std::string& name, std::uint32_t count,
                                     const spi::claim_id& id, duration life = 24h) const {
    return change_latch(name, {spi::latch_change::kind::set, count, id, life});
  }
  result<spi::latch_state> count_down(const std::string& name, std::uint32_t count,
                                      const spi::claim_id& id, duration life = 24h) const {
    return change_latch(name, {spi::latch_change::kind::down, count, id, life});
  }
  result<spi::latch_state> read_latch(const std::string& name) const {
    return answer<spi::latch_state>([&](auto done) {
      store_->read_latch({"", name}, within(generous), std::move(done));
    });
  }
  std::vector<spi::check> probe(duration limit = generous) const {
    return answer<std::vector<spi::check>>(
               [&](auto done) { store_->probe(within(limit), std::move(done)); })
        .value();
  }

  // Waits for its turn, as the core would: attempts again whenever it is told to.
  spi::granted acquire(const spi::claim_ptr& claim,
                       const std::shared_ptr<noting_wakeup>& wakeup) const {
    for (;;) {
      wakeup->listen();
      const auto asked = attempt(claim, wakeup);
      if (!asked) throw std::runtime_error("attempt: " + asked.error().message());
      if (granted(asked)) return std::get<spi::granted>(*asked);
      const duration pause = std::get<spi::blocked>(*asked).recheck_after;
      if (wakeup->is_woken(pause) && wakeup->grant()) return *wakeup->grant();
    }
  }
  spi::granted acquire(const spi::claim_ptr& claim) const {
    return acquire(claim, std::make_shared<noting_wakeup>());
  }

  static spi::op_context within(duration limit) { return {.deadline = clock::now() + limit}; }

 private:
  static std::shared_ptr<sqlite::sqlite_store> open(const std::shared_ptr<spi::reactor>& reactor,
                                                    const sqlite::open_options& options) {
    auto opened = sqlite::sqlite_store::open(reactor, options);
    if (!opened) throw std::runtime_error("open: " + opened.error().message());
    return *opened;
  }
  result<spi::latch_state> change_latch(const std::string& name,
                                        const spi::latch_change& change) const {
    return answer<spi::latch_state>([&](auto done) {
      store_->change_latch({"", name}, change, within(generous), std::move(done));
    });
  }
  template <class T, class Call>
  static result<T> answer(Call&& call) {
    auto promise = std::make_shared<std::promise<result<T>>>();
    auto future = promise->get_future();
    std::forward<Call>(call)(
        spi::completion<T>([promise](result<T> given) { promise->set_value(std::move(given)); }));
    if (future.wait_for(2 * generous) != std::future_status::ready) {
      throw std::runtime_error("a verb was not answered");
    }
    return future.get();
  }

  std::shared_ptr<spi::reactor> reactor_;
  std::shared_ptr<sqlite::sqlite_store> store_;
};

// A database in a folder of its own.
class embedded_file {
 public:
  [[nodiscard]] std::string path() const { return (folder_.path() / "locks.db").string(); }
  [[nodiscard]] std::string beside() const { return path() + ".d"; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  temporary_folder folder_;
};

// A row as the SQLite shell sees it.
class raw_database {
 public:
  explicit raw_database(const std::string& path) { sqlite3_open(path.c_str(), &handle_); }
  raw_database(const raw_database&) = delete;
  raw_database& operator=(const raw_database&) = delete;
  ~raw_database() { sqlite3_close(handle_); }

  void execute(const std::string& sql) {
    EXPECT_EQ(sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle_);
  }
  std::int64_t number(const std::string& sql) {
    sqlite3_stmt* asked = nullptr;
    sqlite3_prepare_v2(handle_, sql.c_str(), -1, &asked, nullptr);
    const std::int64_t found =
        sqlite3_step(asked) == SQLITE_ROW ? sqlite3_column_int64(asked, 0) : -1;
    sqlite3_finalize(asked);
    return found;
  }

 private:
  sqlite3* handle_ = nullptr;
};

// Why the store refuses this file; busy: it does not.
inline error opening(const sqlite::open_options& options) {
  const auto reactor = spi::make_reactor();
  const auto opened = sqlite::sqlite_store::open(reactor, options);
  return opened ? error{errc::busy, "it was opened"} : opened.error();
}
inline error opening(const std::string& path) {
  return opening(sqlite::open_options{.path = path});
}

}  // namespace holdfast::test
