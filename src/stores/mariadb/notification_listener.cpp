#include "stores/mariadb/notification_listener.hpp"

#include "stores/sql/answers.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::mariadb {

namespace {

constexpr duration call_limit = std::chrono::seconds(5);

}  // namespace

notification_listener::notification_listener(net::network net, std::string process,
                                             std::shared_ptr<sql::switchboard> board)
    : net_(std::move(net)), process_(std::move(process)), board_(std::move(board)) {}

std::shared_ptr<notification_listener> notification_listener::make(
    const net::network& net, const make_connection& connected, const std::string& process,
    std::shared_ptr<sql::switchboard> board) {
  std::shared_ptr<notification_listener> made(
      new notification_listener(net, process, std::move(board)));
  sql::connection::events tell;
  tell.opened = [weak = std::weak_ptr(made)] {
    if (const auto self = weak.lock()) self->opened();
  };
  made->connection_ = connected(std::move(tell));
  return made;
}

void notification_listener::opened() {
  std::uint64_t life = 0;
  {
    const std::lock_guard lock(mutex_);
    life = ++life_;
  }
  listen(life);
  board_->opened();
}

// Continues by itself until the connection ends; the next one starts again.
void notification_listener::listen(std::uint64_t life) {
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

void notification_listener::read(std::uint64_t life, const sql::rows& rows) {
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
  // Before they are delivered: their receivers may send something that is answered by a message.
  many ? discard(life) : listen(life);
  for (const std::string_view each : fresh) board_->hear(each);
}

void notification_listener::discard(std::uint64_t life) {
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

void notification_listener::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    ++life_;
  }
  connection_->close();
}

}  // namespace holdfast::mariadb
