// See the header.
#include "stores/redis/client/link.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace holdfast::redis {

namespace {

// An alert or a handshake: no reply of Redis begins like that.
bool is_tls_record(std::string_view bytes) noexcept {
  constexpr char alert = 0x15;
  constexpr char handshake = 0x16;
  return !bytes.empty() && (bytes.front() == alert || bytes.front() == handshake);
}

// What the network says, after the server that it is said of.
std::string told_of(const net::target& where, const std::string& what) {
  const std::string here = where.text();
  return what.starts_with(here) ? what : here + ": " + what;
}

}  // namespace

link::link(net::network net, std::shared_ptr<const server_options> options,
           std::weak_ptr<link_user> user)
    : net_(std::move(net)),
      options_(std::move(options)),
      user_(std::move(user)),
      greeting_(*options_),
      reader_(options_->limits) {}

link::~link() {
  if (!guard_.forked()) close();
}

void link::start() {
  const time_point deadline = net_.reactor->now() + options_->connect_limit;
  {
    const std::scoped_lock lock(mutex_);
    timer_ = net_.reactor->at(deadline, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->fail(
          {errc::unavailable, "redis " + self->options_->where.text() + ": no greeting in time"});
    });
  }
  auto made = net::connector::start(net_, options_->where, options_->tls, deadline,
                                    [weak = weak_from_this()](auto stream) {
                                      const auto self = weak.lock();
                                      if (self != nullptr) self->connected(std::move(stream));
                                    });
  std::unique_lock lock(mutex_);
  connector_ = made;
  if (!over_) return;
  lock.unlock();
  made->cancel();
}

void link::connected(result<std::shared_ptr<net::stream>> made) {
  if (!made) {
    const bool plain = made.error().detail.ends_with("does not speak TLS");
    return fail({made.error().code, "redis " + told_of(options_->where, made.error().detail) +
                                        (plain ? ": use redis://, or no tls=yes" : "")});
  }
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return;
    stream_ = std::move(*made);
  }
  stream_->start(weak_from_this());
  send_greeting();
}

void link::send_greeting() {
  std::string bytes = greeting_.take_bytes();
  if (bytes.empty()) return;
  stream_->queue(bytes);
  stream_->flush();
  std::ranges::fill(bytes, '\0');
}

void link::received(std::string_view bytes) {
  const std::shared_ptr<link_user> user = user_.lock();
  if (user == nullptr) return close();
  if (!greeted_ && options_->tls == nullptr && is_tls_record(bytes)) {
    return fail({errc::denied, "redis " + options_->where.text() +
                                   ": the server speaks TLS: use rediss://, or tls=yes"});
  }
  const auto parsed = reader_.feed(bytes, replies_);
  if (!greeted_ && !greet(replies_, *user)) return;
  if (!replies_.empty()) user->received(*this, replies_);
  replies_.clear();
  if (!parsed) {
    fail({errc::unavailable, "redis " + options_->where.text() + ": " + parsed.error().detail});
  }
}

// Takes the replies that belong to the greeting. False: it goes on, or it failed.
bool link::greet(std::vector<reply>& replies, link_user& user) {
  std::size_t taken = 0;
  while (!greeted_ && taken < replies.size()) {
    const auto step = greeting_.take(replies[taken++]);
    if (!step) {
      fail(step.error());
      return false;
    }
    greeted_ = *step == greeting::step::finished;
  }
  replies.erase(replies.begin(), replies.begin() + static_cast<std::ptrdiff_t>(taken));
  if (!greeted_) {
    send_greeting();
    return false;
  }
  spi::runtime::timer_id timer = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return false;
    timer = std::exchange(timer_, 0);
    connector_ = nullptr;
  }
  net_.reactor->cancel(timer);
  user.opened(*this, greeting_.server());
  return true;
}

const char* link::progress() {
  const std::scoped_lock lock(mutex_);
  if (stream_ != nullptr) return "waiting for the greeting";
  return connector_ != nullptr ? connector_->progress() : "connecting";
}

void link::ended(const error& why) {
  if (!greeted_ && options_->tls == nullptr && why == errc::unavailable) {
    return fail({errc::unavailable, "redis " + why.detail +
                                        " before it said a word; if the server speaks TLS: use "
                                        "rediss://, or tls=yes"});
  }
  fail({why.code, why.code == errc::unavailable ? "redis " + why.detail : why.detail});
}

void link::fail(const error& why) {
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return;
  }
  close();
  if (const auto user = user_.lock()) user->ended(*this, why);
}

void link::close() noexcept {
  std::unique_lock lock(mutex_);
  if (std::exchange(over_, true)) return;
  const std::shared_ptr<net::connector> connecting = std::move(connector_);
  const std::shared_ptr<net::stream> open = stream_;
  const spi::runtime::timer_id timer = std::exchange(timer_, 0);
  lock.unlock();
  net_.reactor->cancel(timer);
  if (connecting != nullptr) connecting->cancel();
  if (open != nullptr) open->close();
}

}  // namespace holdfast::redis
