#include "stores/zookeeper/link.hpp"

#include "stores/zookeeper/jute.hpp"

#include <utility>

namespace holdfast::zookeeper {

link::link(net::network net, net::target where, std::shared_ptr<const server_options> options,
           greeting mine, std::weak_ptr<link_user> user)
    : net_(std::move(net)),
      where_(std::move(where)),
      options_(std::move(options)),
      mine_(std::move(mine)),
      user_(std::move(user)) {}

link::~link() {
  if (!guard_.forked()) close();
}

void link::start(time_point deadline) {
  {
    const std::scoped_lock lock(mutex_);
    timer_ = net_.reactor->at(deadline, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->fail({errc::unavailable, "zookeeper " + self->where_.text() + ": no greeting in time"});
    });
  }
  auto made = net::connector::start(net_, where_, options_->tls, deadline,
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
    const std::string here = where_.text();
    const std::string& what = made.error().detail;
    return fail(
        {made.error().code, "zookeeper " + (what.starts_with(here) ? what : here + ": " + what)});
  }
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return;
    stream_ = std::move(*made);
  }
  stream_->start(weak_from_this());
  greeted_at_ = net_.reactor->now();
  stream_->queue(framed(make_greeting(mine_)));
  stream_->flush();
}

void link::received(std::string_view bytes) {
  const std::shared_ptr<link_user> user = user_.lock();
  if (user == nullptr) return close();
  incoming_ += bytes;
  std::vector<std::string> frames;
  std::string_view rest = incoming_;
  while (rest.size() >= 4) {
    const auto size = static_cast<std::uint32_t>(jute_reader(rest).number());
    if (size > frame_limit) {
      return fail({errc::unavailable, "zookeeper " + where_.text() + ": this is not ZooKeeper"});
    }
    if (rest.size() - 4 < size) break;
    frames.emplace_back(rest.substr(4, size));
    rest.remove_prefix(4 + size);
  }
  incoming_.erase(0, incoming_.size() - rest.size());
  if (frames.empty()) return;
  if (!greeted_) {
    if (!greet(frames.front(), *user)) return;
    frames.erase(frames.begin());
  }
  if (!frames.empty()) user->received(*this, frames);
}

bool link::greet(const std::string& frame, link_user& user) {
  const auto theirs = read_greeting(frame);
  if (!theirs) {
    fail({errc::unavailable, "zookeeper " + where_.text() + ": " + theirs.error().detail});
    return false;
  }
  greeted_ = true;
  spi::runtime::timer_id timer = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return false;
    timer = std::exchange(timer_, 0);
    connector_ = nullptr;
  }
  net_.reactor->cancel(timer);
  user.opened(*this, *theirs);
  return true;
}

void link::ended(const error& why) {
  fail({why.code, why.code == errc::unavailable ? "zookeeper " + why.detail : why.detail});
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

}  // namespace holdfast::zookeeper
