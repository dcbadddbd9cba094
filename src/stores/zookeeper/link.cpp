#include "stores/zookeeper/link.hpp"

#include "stores/zookeeper/protocol.hpp"

#include <utility>

namespace holdfast::zookeeper {

link::link(net::network net, net::target where, std::shared_ptr<const server_options> options,
           greeting mine, std::weak_ptr<link_user> user)
    : link_base(std::move(net), std::move(where), options->tls, "zookeeper"),
      mine_(std::move(mine)),
      user_(std::move(user)) {}

link::~link() {
  if (!guard_.forked()) close();
}

void link::start(time_point deadline) {
  connect(weak_from_this(), deadline, "no greeting in time");
}

void link::connected() {
  stream_->start(weak_from_this());
  greeted_at_ = net_.reactor->now();
  stream_->queue(framed(make_greeting(mine_)));
  stream_->flush();
}

void link::tell_end(const error& why) {
  if (const auto user = user_.lock()) user->ended(*this, why);
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
      return fail(problem("this is not ZooKeeper"));
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
    fail(problem(theirs.error().detail));
    return false;
  }
  greeted_ = true;
  spi::runtime::timer_id timer = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return false;
    timer = greeted();
  }
  net_.reactor->cancel(timer);
  user.opened(*this, *theirs);
  return true;
}

}  // namespace holdfast::zookeeper
