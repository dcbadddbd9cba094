// The embedded store: several processes of one machine share a file, without a server. Claims are
// rows of an SQLite database, each verb is one transaction on the caller's thread; clients wake
// each other through sockets beside the file; the operating system knows who lives.
#pragma once

#include "stores/sql/common/subscribers.hpp"
#include "stores/sqlite/local_claims.hpp"
#include "stores/sqlite/location.hpp"
#include "stores/sqlite/membership.hpp"
#include "stores/sqlite/peer_notifier.hpp"
#include "stores/sqlite/session.hpp"
#include "stores/sqlite/worker.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::sqlite {

struct open_options {
  std::string path = {};
  // The machine as this client sees it; tests pretend a reboot or another time namespace.
  std::optional<host> here = std::nullopt;
  duration deadline = std::chrono::seconds(5);
};

// Thread-safe. Verbs run on the caller's thread and complete before they return, except on the
// reactor's own threads: there they go to the worker. States: open -> closed; after a fork the
// child's is inert (every verb answers `cancelled`).
//
// Shutdown, in this order: verbs are refused; the worker ends; own claims, then the client itself
// leave the database; the socket closes; the sign of life ends.
class sqlite_store final : public spi::store, public std::enable_shared_from_this<sqlite_store> {
 public:
  static result<std::shared_ptr<sqlite_store>> open(std::shared_ptr<spi::reactor> reactor,
                                                    const open_options& options);
  ~sqlite_store() override;
  sqlite_store(const sqlite_store&) = delete;
  sqlite_store& operator=(const sqlite_store&) = delete;

  [[nodiscard]] const spi::caps& caps() const noexcept override { return caps_; }

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override;
  void transfer(const spi::claim_id& from, spi::claim_ptr to, std::shared_ptr<spi::wakeup> wakeup,
                const spi::op_context& context, spi::completion<spi::granted> done) override;

  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) override;
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) override;
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context,
              spi::completion<std::vector<spi::holder>> done) override;
  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) override;

  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context,
                    spi::completion<spi::latch_state> done) override;
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) override;
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) override;

  void probe(const spi::op_context& context,
             spi::completion<std::vector<spi::check>> done) override;
  // First takes up what was handed over: the other process cannot.
  [[nodiscard]] int life_descriptor() const noexcept override;
  void close() noexcept override;

 private:
  explicit sqlite_store(std::shared_ptr<spi::reactor> reactor);

  // sqlite_store.cpp
  result<void> start(const open_options& options);
  result<void> begin_verb() const;
  void end_verb() const noexcept;
  bool leave_database() noexcept;  // false: it may still name this client
  void take_up_all() const noexcept;
  [[nodiscard]] int parcel_of_life() const noexcept;
  void schedule_upkeep();
  void keep_up();
  void look_after();
  void mark_broken(const error& why);
  // Fails permanently once the files are known not to be those that were opened.
  [[nodiscard]] result<void> intact() const;
  void repay();

  // Calls verb(deadline) here or, if this call must not block, on the worker. Successive verbs on
  // one resource keep their order: a try after a wait does not find its own place in the queue.
  // `of`: the claim of the verb, if there is one.
  template <class T, class Verb>
  void perform(const spi::claim* of, const spi::op_context& context, spi::completion<T> done,
               Verb verb);

  // A write transaction; an error means that nothing has happened.
  template <class Work, class FastPath = decltype(session::never)>
  result<void> write(time_point deadline, effects& out, const spi::claim_id* claim,
                     const Work& work, const FastPath& fast_path = session::never);
  template <class Work>
  result<void> read(time_point deadline, effects& out, const Work& work);
  result<void> noticed(result<void> done);

  // verbs.cpp
  moment step_of(effects& out, const std::set<std::int64_t>& dead,
                 const spi::claim_id* claim = nullptr) const;
  void settle(const std::string& key, time_point deadline);
  void deliver(const effects& out, const spi::resource_id& on, time_point deadline);
  // `place`: of the claim, as far as this client knows.
  enum class asks : std::uint8_t { first, again };  // again: lost, where it is not there any more
  result<spi::outcome> do_attempt(const spi::claim& claim, std::int64_t place, time_point deadline,
                                  asks how = asks::first);
  result<spi::departure> do_leave(const spi::claim& claim, time_point deadline);
  result<std::vector<spi::renewal>> do_renew(const std::vector<spi::claim_ptr>& claims,
                                             time_point deadline);
  result<void> take_up(const std::vector<spi::claim_ptr>& claims,
                       std::vector<spi::renewal>& answers, time_point deadline);
  void leave_out_dead(contents& of, time_point deadline);
  result<std::unique_ptr<spi::subscription>> registered(
      const std::string& key, std::unique_ptr<spi::subscription> subscription);
  void forget_observer(const std::string& key);

  // doctor.cpp
  result<std::vector<spi::check>> do_probe(time_point deadline);

  const std::shared_ptr<spi::reactor> reactor_;
  const spi::caps caps_;
  const std::uint64_t born_ = fork_generation();
  const std::shared_ptr<local_claims> local_claims_ = std::make_shared<local_claims>();

  // Set by start(), then constant until the end.
  std::shared_ptr<const folder> folder_;
  std::shared_ptr<session> session_;
  peer self_;
  std::optional<life> life_;
  // Dead clients that were found at opening and that no probe has reported yet.
  std::atomic<std::size_t> cleared_{0};
  std::shared_ptr<sql::subscribers> subscribers_;
  std::shared_ptr<peer_notifier> peer_notifier_;
  std::unique_ptr<worker> worker_;

  mutable std::mutex mutex_;
  mutable std::condition_variable idle_;
  bool closed_ = false;            // guarded by mutex_
  mutable int verbs_ = 0;          // guarded by mutex_; under way
  std::optional<error> broken_;    // guarded by mutex_: the files are not those that were opened
  bool upkeep_scheduled_ = false;  // guarded by mutex_
};

template <class T, class Verb>
void sqlite_store::perform(const spi::claim* of, const spi::op_context& context,
                           spi::completion<T> done, Verb verb) {
  if (auto begun = begin_verb(); !begun) return done(tl::unexpected(std::move(begun.error())));
  const bool may_block = !context.in_passing && !reactor_->on_own_thread();
  if (may_block && (of == nullptr || !local_claims_->pending(of->resource))) {
    result<T> answer = verb(context.deadline);
    end_verb();
    return done(std::move(answer));
  }
  std::optional<spi::resource_id> on;
  if (of != nullptr) local_claims_->add_pending(on.emplace(of->resource));
  worker_->post(context.deadline, [self = shared_from_this(), on = std::move(on),
                                   deadline = context.deadline, done = std::move(done),
                                   verb = std::move(verb)](const result<void>& begun) mutable {
    auto answer = begun ? verb(deadline) : tl::unexpected(begun.error());
    if (on) self->local_claims_->end_pending(*on);
    self->end_verb();
    done(std::move(answer));
  });
}

template <class Work, class FastPath>
result<void> sqlite_store::write(time_point deadline, effects& out, const spi::claim_id* claim,
                                 const Work& work, const FastPath& fast_path) {
  if (auto whole = intact(); !whole) return whole;
  const auto dead = peer_notifier_->dead();
  const auto now_or_later = [&](const auto& step_by) {
    return [&](ledger& book) { return step_by(book, step_of(out, *dead, claim)); };
  };
  auto done = noticed(session_->write(deadline, now_or_later(work), now_or_later(fast_path)));
  if (!done) out = {};
  return done;
}

template <class Work>
result<void> sqlite_store::read(time_point deadline, effects& out, const Work& work) {
  if (auto whole = intact(); !whole) return whole;
  const auto dead = peer_notifier_->dead();
  return noticed(session_->read(deadline, [&](ledger& book) { work(book, step_of(out, *dead)); }));
}

// sqlite:FILE. invalid: a host, or options.
result<std::shared_ptr<spi::store>> open_sqlite(const spi::url& url,
                                                std::shared_ptr<spi::reactor> reactor);

}  // namespace holdfast::sqlite
