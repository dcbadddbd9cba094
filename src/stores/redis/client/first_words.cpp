
#include "stores/redis/client/first_words.hpp"

#include <utility>

namespace holdfast::redis {

// Of TLS 1.2, with one cipher suite, and padded so that the size of the record, 522, ends in a newline:
// there the first line ends for a server that knows lines only.
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

}  // namespace holdfast::redis
