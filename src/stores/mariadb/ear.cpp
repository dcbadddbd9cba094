// See the header.
#include "stores/mariadb/ear.hpp"

#include "stores/sql/words.hpp"

#include <utility>

namespace holdfast::mariadb {

namespace {

constexpr duration call_limit = std::chrono::seconds(5);

std::string token(spi::runtime& runtime) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {runtime.random(), runtime.random()}) {
    for (unsigned shift = 0; shift < 64; shift += 4) text += digits[half >> shift & 15U];
  }
  return text;
}

}  // namespace

ear::ear(net::network net, std::shared_ptr<sql::bells> bells,
         std::shared_ptr<sql::audience> audience, std::string process)
    : net_(std::move(net)),
      bells_(std::move(bells)),
      audience_(std::move(audience)),
      process_(std::move(process)) {}

std::shared_ptr<ear> ear::make(net::network net, std::shared_ptr<const server_options> options,
                               std::shared_ptr<sql::bells> bells,
                               std::shared_ptr<sql::audience> audience) {
  std::string process = token(*net.reactor);
  std::shared_ptr<ear> made(
      new ear(net, std::move(bells), std::move(audience), std::move(process)));
  connection::events tell;
  tell.opened = [weak = std::weak_ptr(made)] {
    if (const auto self = weak.lock()) self->opened();
  };
  made->connection_ =
      connection::make(std::move(net), std::move(options), "hf_" + made->process_, std::move(tell));
  return made;
}

void ear::opened() {
  std::uint64_t life = 0;
  {
    const std::lock_guard lock(mutex_);
    life = ++life_;
  }
  listen(life);
  answer({});
  bells_->ring_all();
  audience_->tell_all_latches();
}

// Goes on by itself until the connection ends; the next one begins anew.
void ear::listen(std::uint64_t life) {
  std::string seen;
  {
    const std::lock_guard lock(mutex_);
    if (life != life_) return;
    for (const std::int64_t each : seen_) seen += (seen.empty() ? "" : ",") + std::to_string(each);
  }
  arguments with;
  with.bytes(process_).bytes(seen).number(pause.count());
  connection_->send(statement::listen, with, net_.reactor->now() + pause + call_limit,
                    [weak = weak_from_this(), life](const result<sql::rows>& rows) {
                      const auto self = weak.lock();
                      if (self != nullptr && rows) self->read(life, *rows);
                    });
}

void ear::read(std::uint64_t life, const sql::rows& rows) {
  bool many = false;
  std::vector<std::string_view> fresh;
  {
    const std::lock_guard lock(mutex_);
    if (life != life_) return;
    for (const std::string& row : rows) {
      sql::words line(row);
      const auto number = line.number();
      if (line.fine() && seen_.insert(number).second) fresh.push_back(line.rest());
    }
    many = seen_.size() >= discard_at || (rows.empty() && !seen_.empty());
  }
  // Before they are told: those who are told may send something that is answered by a message.
  many ? discard(life) : listen(life);
  for (const std::string_view each : fresh) heard(each);
}

void ear::discard(std::uint64_t life) {
  std::set<std::int64_t> old;
  {
    const std::lock_guard lock(mutex_);
    old = seen_;
  }
  arguments with;
  for (const std::int64_t each : old) with.number(each);
  connection_->send(
      statement::discard, with, net_.reactor->now() + call_limit,
      [weak = weak_from_this(), life, old = std::move(old)](const result<sql::rows>& done) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        if (done) {
          const std::lock_guard lock(self->mutex_);
          for (const std::int64_t each : old) self->seen_.erase(each);
        }
        self->listen(life);
      });
}

void ear::heard(std::string_view message) {
  const auto push = sql::to_push(message);
  if (!push) return;
  switch (push->what) {
    case sql::push::kind::event:
      return audience_->tell(push->key, push->event);
    case sql::push::kind::latch:
      return audience_->tell_latch(push->key);
    default:
      bells_->ring(*push);
  }
}

void ear::when_open(time_point deadline, spi::completion<void> done) {
  start();
  {
    const std::lock_guard lock(mutex_);
    awaited_.push_back(std::move(done));
  }
  if (connection_->is_open()) return answer({});
  net_.reactor->at(deadline, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->answer(tl::unexpected(self->connection_->last_failure().value_or(
        error{errc::unavailable, "mariadb: not connected in time"})));
  });
}

// Everybody at once: a deadline that passes too early for one of them costs it a repetition.
void ear::answer(const result<void>& outcome) {
  std::vector<spi::completion<void>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(awaited_);
  }
  for (auto& each : all) each(outcome);
}

void ear::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    ++life_;
  }
  connection_->close();
  answer(failure(errc::cancelled, "closed"));
}

}  // namespace holdfast::mariadb
