#include "stores/redis/client/link.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace holdfast::redis {

// Of TLS 1.2, with one cipher suite, and padded so that the size of the record, 522, ends in a
// newline: there the first line ends for a server that only knows lines.
std::string client_hello() {
  using namespace std::string_literals;
  return "\x16\x03\x01\x02\n"s +                      // a handshake, 522 bytes
         "\x01\0\x02\x06"s +                          // a ClientHello, 518 bytes
         "\x03\x03"s + std::string(32, '\0') +        // version, random
         "\0\0\x02\xc0\x2f\x01\0"s +                  // no session, one suite, no compression
         "\x01\xdb"s +                                // extensions, 475 bytes
         "\0\x15\x01\xd7"s + std::string(471, '\0');  // padding
}

// An alert or a handshake: no reply of Redis begins like that.
bool is_tls_record(std::string_view bytes) noexcept {
  constexpr char alert = 0x15;
  constexpr char handshake = 0x16;
  return !bytes.empty() && (bytes.front() == alert || bytes.front() == handshake);
}

first_words::first_words(net::network net, std::string packet, answer done)
    : net_(std::move(net)), packet_(std::move(packet)), done_(std::move(done)) {}

std::shared_ptr<first_words> first_words::ask(const net::network& net, const net::target& where,
                                              std::string packet, time_point deadline,
                                              answer done) {
  auto self = std::make_shared<first_words>(net, std::move(packet), std::move(done));
  {
    const std::scoped_lock lock(self->mutex_);
    self->timer_ = net.reactor->at(deadline, [weak = self->weak_from_this()] {
      if (const auto late = weak.lock()) late->finish({});
    });
  }
  auto made = net::connector::start(net, where, nullptr, deadline,
                                    [weak = self->weak_from_this()](auto stream) {
                                      if (const auto asker = weak.lock())
                                        asker->connected(std::move(stream));
                                    });
  std::unique_lock lock(self->mutex_);
  if (self->done_) {
    self->connector_ = std::move(made);
  } else {
    lock.unlock();
    made->cancel();
  }
  return self;
}

void first_words::connected(result<std::shared_ptr<net::stream>> made) {
  if (!made) return finish({});
  const std::shared_ptr<net::stream> stream = std::move(*made);
  {
    const std::scoped_lock lock(mutex_);
    if (!done_) return;
    stream_ = stream;
  }
  stream->start(weak_from_this());
  stream->queue(packet_);
  stream->flush();
}

void first_words::cancel() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (!done_) return;
    done_ = [](const std::string&) {};
  }
  finish({});
}

void first_words::finish(std::string said) {
  std::unique_lock lock(mutex_);
  if (!done_) return;
  answer done = std::exchange(done_, nullptr);
  const std::shared_ptr<net::connector> connecting = std::move(connector_);
  const std::shared_ptr<net::stream> open = std::move(stream_);
  const spi::runtime::timer_id timer = std::exchange(timer_, 0);
  lock.unlock();
  net_.reactor->cancel(timer);
  if (connecting != nullptr) connecting->cancel();
  if (open != nullptr) open->close();
  done(std::move(said));
}

namespace {

// How long a server may take for its part of the TLS handshake before we
// check whether it speaks TLS.
constexpr duration handshake_pause = std::chrono::milliseconds(300);
constexpr duration asking_limit = std::chrono::seconds(1);

}  // namespace

link::link(net::network net, std::shared_ptr<const server_options> options,
           std::weak_ptr<link_user> user)
    : link_base(std::move(net), options->where, options->tls, "redis"),
      options_(std::move(options)),
      user_(std::move(user)),
      greeting_(*options_),
      reader_(options_->limits) {}

link::~link() {
  if (!guard_.forked()) close();
}

void link::start() {
  connect(weak_from_this(), net_.reactor->now() + options_->connect_limit, "no greeting in time");
  if (options_->tls != nullptr) doubt_soon();
}

// A server without TLS takes our handshake for the beginning of a command, and stays silent.
void link::doubt_soon() {
  const std::scoped_lock lock(mutex_);
  if (over_ || stream_ != nullptr) return;
  doubt_timer_ = net_.reactor->at(net_.reactor->now() + handshake_pause, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->doubt();
  });
}

void link::doubt() {
  {
    const std::scoped_lock lock(mutex_);
    if (over_ || stream_ != nullptr || connector_ == nullptr) return;
  }
  if (!shaking_hands()) return doubt_soon();
  ask([](link& self, const std::string& said) {
    if (said.starts_with('-')) self.fail(self.without_tls());
  });
}

bool link::shaking_hands() {
  const std::scoped_lock lock(mutex_);
  return connector_ != nullptr && connector_->shaking_hands();
}

void link::ask(void (*then)(link&, const std::string&)) {
  auto made =
      first_words::ask(net_, options_->where, client_hello(), net_.reactor->now() + asking_limit,
                       [weak = weak_from_this(), then](const std::string& said) {
                         if (const auto self = weak.lock()) then(*self, said);
                       });
  std::unique_lock lock(mutex_);
  asking_ = made;
  if (!over_) return;
  lock.unlock();
  made->cancel();
}

error link::with_tls() const {
  return {errc::denied,
          "redis " + options_->where.text() + ": the server speaks TLS: use rediss://, or tls=yes"};
}

error link::without_tls() const {
  return {errc::denied, "redis " + options_->where.text() +
                            ": the server does not speak TLS: use redis://, or no tls=yes"};
}

error link::unreachable(const error& why) const {
  return why.detail.ends_with("does not speak TLS") ? without_tls() : link_base::unreachable(why);
}

void link::connected() {
  stream_->start(weak_from_this());
  send_greeting();
}

void link::tell_end(const error& why) {
  if (const auto user = user_.lock()) user->ended(*this, why);
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
  spoken_ = true;
  if (!greeted_ && options_->tls == nullptr && is_tls_record(bytes)) return fail(with_tls());
  const auto parsed = reader_.feed(bytes, replies_);
  if (!greeted_ && !greet(replies_, *user)) return;
  if (!replies_.empty()) user->received(*this, replies_);
  replies_.clear();
  if (!parsed) fail(problem(parsed.error().detail));
}

// Takes the replies that belong to the greeting. False: it continues, or it failed.
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
  spi::runtime::timer_id doubt = 0;
  std::shared_ptr<first_words> asking;
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return false;
    timer = greeted();
    doubt = std::exchange(doubt_timer_, 0);
    asking = std::move(asking_);
  }
  net_.reactor->cancel(timer);
  net_.reactor->cancel(doubt);
  if (asking != nullptr) asking->cancel();
  user.opened(*this, greeting_.server());
  return true;
}

const char* link::progress() {
  const std::scoped_lock lock(mutex_);
  if (stream_ != nullptr) return "waiting for the greeting";
  return connector_ != nullptr ? connector_->progress() : "connecting";
}

void link::ended(const error& why) {
  const error told = named(why);
  if (spoken_ || options_->tls != nullptr || why != errc::unavailable) return fail(told);
  // A server that waits for a TLS handshake does this, but others do too:
  // check whether it speaks TLS.
  hung_up_ = told;
  ask([](link& self, const std::string& said) {
    self.fail(is_tls_record(said) ? self.with_tls() : self.hung_up_);
  });
}

void link::closing() noexcept {
  std::unique_lock lock(mutex_);
  const std::shared_ptr<first_words> asking = std::move(asking_);
  const spi::runtime::timer_id doubt = std::exchange(doubt_timer_, 0);
  lock.unlock();
  net_.reactor->cancel(doubt);
  if (asking != nullptr) asking->cancel();
}

}  // namespace holdfast::redis
