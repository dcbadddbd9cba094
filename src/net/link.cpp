#include "net/link.hpp"

#include <utility>

namespace holdfast::net {

link_base::link_base(network net, target where, std::shared_ptr<const tls_context> tls,
                     const char* engine)
    : net_(std::move(net)), where_(std::move(where)), tls_(std::move(tls)), engine_(engine) {}

void link_base::connect(std::weak_ptr<link_base> self, time_point deadline, const char* late) {
  {
    const std::scoped_lock lock(mutex_);
    timer_ = net_.reactor->at(deadline, [self, late] {
      if (const auto alive = self.lock()) alive->fail(alive->problem(late));
    });
  }
  auto made = connector::start(net_, where_, tls_, deadline, [self](auto stream) {
    if (const auto alive = self.lock()) alive->take_stream(std::move(stream));
  });
  std::unique_lock lock(mutex_);
  connector_ = made;
  if (!over_) return;
  lock.unlock();
  made->cancel();
}

void link_base::take_stream(result<std::shared_ptr<stream>> made) {
  if (!made) return fail(unreachable(made.error()));
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return;
    stream_ = std::move(*made);
  }
  connected();
}

spi::runtime::timer_id link_base::greeted() {
  connector_ = nullptr;
  return std::exchange(timer_, 0);
}

error link_base::problem(const std::string& what) const {
  return {errc::unavailable, std::string(engine_) + " " + where_.text() + ": " + what};
}

error link_base::named(const error& why) const {
  return {why.code,
          why == errc::unavailable ? std::string(engine_) + " " + why.detail : why.detail};
}

error link_base::unreachable(const error& why) const {
  const std::string here = where_.text();
  const std::string& what = why.detail;
  return {why.code,
          std::string(engine_) + " " + (what.starts_with(here) ? what : here + ": " + what)};
}

void link_base::ended(const error& why) { fail(named(why)); }

void link_base::fail(const error& why) {
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return;
  }
  close();
  tell_end(why);
}

void link_base::close() noexcept {
  std::unique_lock lock(mutex_);
  if (std::exchange(over_, true)) return;
  const std::shared_ptr<connector> connecting = std::move(connector_);
  const std::shared_ptr<stream> open = stream_;
  const spi::runtime::timer_id timer = std::exchange(timer_, 0);
  lock.unlock();
  net_.reactor->cancel(timer);
  closing();
  if (connecting != nullptr) connecting->cancel();
  if (open != nullptr) open->close();
}

}  // namespace holdfast::net
