#include "stores/sqlite/mailbox.hpp"

#include "stores/sql/common/names.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace holdfast::sqlite {

namespace {

constexpr int backlog = 4096;
constexpr int packets_per_turn = 64;
constexpr int accepts_per_turn = 64;
// After a process ran out of descriptors.
constexpr duration accept_pause = std::chrono::milliseconds(100);

mailbox::delivery outcome_of(int number) {
  switch (number) {
    case ECONNREFUSED:
    case ENOENT:
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
      return mailbox::delivery::refused;
    default:
      return mailbox::delivery::failed;
  }
}

}  // namespace

struct mailbox::link {
  std::mutex mutex;
  descriptor socket;                   // guarded by mutex: closed while others may send
  spi::reactor::watch_id watched = 0;  // guarded by the mailbox's mutex
  peer who;                            // number 0 until it said hello; then guarded likewise

  delivery send(const std::string& packet) {
    const std::lock_guard lock(mutex);
    if (!socket) return delivery::refused;
    // Never blocks: the queue of a stopped process fills up.
    if (::send(socket.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
      return delivery::sent;
    }
    return outcome_of(errno);
  }
};

mailbox::mailbox(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<const folder> at, peer self,
                 handlers call, descriptor listener)
    : reactor_(std::move(reactor)),
      folder_(std::move(at)),
      self_(std::move(self)),
      call_(std::move(call)),
      listener_(std::move(listener)) {}

mailbox::~mailbox() { close(); }

result<std::shared_ptr<mailbox>> mailbox::open(std::shared_ptr<spi::reactor> reactor,
                                               std::shared_ptr<const folder> at, peer self,
                                               handlers call) {
  descriptor listener = descriptor::made_by(
      [] { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  const socket_address address = at->address(self.socket());
  if (!listener || ::bind(listener.get(), address.get(), address.size) != 0 ||
      ::fchmodat(at->get(), self.socket().c_str(), at->file_mode(), 0) != 0 ||
      ::listen(listener.get(), backlog) != 0) {
    return refusal_by_system(at->path() + "/" + self.socket(), errno, errc::unavailable);
  }
  std::shared_ptr<mailbox> made(new mailbox(std::move(reactor), std::move(at), std::move(self),
                                            std::move(call), std::move(listener)));
  const std::lock_guard lock(made->mutex_);
  try {
    made->listening_ = made->reactor_->watch(made->listener_.get(), true, false,
                                             [weak = made->weak_from_this()](spi::readiness) {
                                               if (const auto alive = weak.lock())
                                                 alive->accept_some();
                                             });
  } catch (const std::system_error& problem) {
    return failure(errc::unavailable,
                   "sqlite, open " + made->folder_->path() + ", " + problem.what());
  }
  return made;
}

void mailbox::heed(bool newcomers) noexcept {
  try {
    reactor_->rewatch(listening_, newcomers, false);
  } catch (const std::system_error&) {
    // No change: a client is accepted, or waits in the kernel's queue until the next look.
  }
}

void mailbox::accept_some() {
  for (int count = 0; count < accepts_per_turn; ++count) {
    int listener = -1;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;
      if (links_.size() >= link_limit) break;
      listener = listener_.get();
    }
    auto made = std::make_shared<link>();
    made->socket = descriptor::made_by(
        [&] { return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
    if (!made->socket) {
      if (errno == EAGAIN) return;
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return pause_accepting();
    }
    adopt(made);
  }
  const std::lock_guard lock(mutex_);
  if (links_.size() < link_limit) return;
  // Clients that are not accepted wait in the kernel's queue, and are disconnected
  // when we end all the same.
  if (!closed_) heed(false);
}

void mailbox::pause_accepting() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    heed(false);
  }
  reactor_->at(reactor_->now() + accept_pause, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    if (!self->closed_) self->heed(true);
  });
}

// From here on the reactor calls ready(). The mutex is held across watch(), so that a first call
// that drops the link knows its watch.
bool mailbox::adopt(const link_ptr& made) {
  const std::lock_guard lock(mutex_);
  if (closed_) return false;
  try {
    made->watched = reactor_->watch(made->socket.get(), true, false,
                                    [weak = weak_from_this(), made](spi::readiness) {
                                      if (const auto self = weak.lock()) self->ready(made);
                                    });
  } catch (const std::system_error&) {
    return false;
  }
  links_.insert(made);
  // We dialled: there was no link, or a broken one.
  if (made->who.number != 0) known_.insert_or_assign(made->who.number, made);
  return true;
}

mailbox::link_ptr mailbox::find(std::int64_t client) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(client);
  return found == known_.end() ? nullptr : found->second;
}

bool mailbox::connected(std::int64_t client) const { return find(client) != nullptr; }

mailbox::delivery mailbox::dial(const peer& to, link_ptr& made) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || links_.size() >= link_limit) return delivery::failed;
  }
  made = std::make_shared<link>();
  made->who = to;
  made->socket = descriptor::made_by(
      [] { return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  if (!made->socket) return delivery::failed;
  const socket_address address = folder_->address(to.socket());
  if (::connect(made->socket.get(), address.get(), address.size) != 0) return outcome_of(errno);
  const delivery said = made->send(encode({.what = message::kind::hello, .from = self_}));
  if (said == delivery::sent && !adopt(made)) return delivery::failed;
  return said;
}

mailbox::delivery mailbox::connect(const peer& to) {
  if (find(to.number)) return delivery::sent;
  link_ptr made;
  return dial(to, made);
}

mailbox::delivery mailbox::send(const peer& to, const message& what) {
  const std::string packet = encode(what);
  link_ptr known = find(to.number);
  if (known) {
    const delivery said = known->send(packet);
    if (said != delivery::refused) return said;
    // The connection is broken, which says nothing yet about the client.
  }
  if (const delivery dialled = dial(to, known); dialled != delivery::sent) return dialled;
  return known->send(packet);
}

void mailbox::ready(const link_ptr& from) {
  std::array<char, message::max_size> buffer{};
  for (int count = 0; count < packets_per_turn; ++count) {
    ssize_t size = 0;
    {
      const std::lock_guard lock(from->mutex);
      if (!from->socket) return;
      size = ::recv(from->socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    }
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) return drop(from);
    if (auto what = decode({buffer.data(), static_cast<std::size_t>(size)})) {
      handle(from, std::move(*what));
    }
  }
}

void mailbox::handle(const link_ptr& from, message what) {
  if (what.what != message::kind::hello) return call_.received(what);
  const std::lock_guard lock(mutex_);
  if (closed_ || from->who.number != 0) return;
  from->who = std::move(what.from);
  known_.try_emplace(from->who.number, from);
}

void mailbox::drop(const link_ptr& ended) {
  peer who;
  spi::reactor::watch_id watched = 0;
  {
    const std::lock_guard lock(mutex_);
    if (links_.erase(ended) == 0) return;
    who = ended->who;
    watched = ended->watched;
    const auto found = known_.find(who.number);
    if (found != known_.end() && found->second == ended) known_.erase(found);
    if (links_.size() == link_limit - 1 && !closed_) heed(true);
  }
  reactor_->unwatch(watched);
  {
    const std::lock_guard lock(ended->mutex);
    ended->socket.close();
  }
  if (who.number != 0) call_.hung_up(who);
}

int mailbox::share() const noexcept {
  const std::lock_guard lock(mutex_);
  return ::fcntl(listener_.get(), F_DUPFD_CLOEXEC, 3);
}

void mailbox::close() noexcept {
  std::set<link_ptr> links;
  spi::reactor::watch_id listening = 0;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    links.swap(links_);
    known_.clear();
    listening = listening_;
  }
  // Outside the mutex: unwatch() waits for a call that is under way, which may need the mutex.
  if (listening != 0) reactor_->unwatch(listening);
  for (const link_ptr& each : links) {
    reactor_->unwatch(each->watched);
    const std::lock_guard lock(each->mutex);
    each->socket.close();
  }
  folder_->remove(self_.socket());
  const std::lock_guard lock(mutex_);
  listener_.close();
}

namespace {

constexpr std::uint32_t magic = 0x53414648;  // "HFAS"
constexpr std::uint16_t version = 1;
constexpr unsigned about_wanted = 1;
constexpr unsigned about_offer = 2;

// Pushes in the order of push::kind.
enum class wire : std::uint16_t { hello = 1, granted = 2, gone = 5, event = 6, latch = 7 };

// Both ends run on one machine: native byte order.
struct packet_head {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t kind;
  std::int64_t client;
  std::uint8_t claim[16];
  std::uint64_t fence;
  std::int64_t ttl;
  std::int64_t at;
  std::uint8_t about;
  std::uint8_t fenced;
  std::uint8_t mode;
  std::uint8_t event;
  std::uint16_t name_size;
  std::uint16_t text_size;
};
static_assert(sizeof(packet_head) == 64);
static_assert(std::is_trivially_copyable_v<packet_head>);
static_assert(std::has_unique_object_representations_v<packet_head>);

void set_kind(packet_head& head, wire what, unsigned further = 0) {
  head.kind = static_cast<std::uint16_t>(static_cast<unsigned>(what) + further);
}

// Its text.
std::string_view put(packet_head& head, const ledgers::push& push) {
  set_kind(head, wire::granted, static_cast<unsigned>(push.what));
  std::ranges::copy(push.claim.bytes, head.claim);
  head.ttl = push.kept.count();
  if (push.grant) {
    head.fence = push.grant->fence.value();
    head.ttl = push.grant->ttl.count();
    head.at = push.grant->at.time_since_epoch().count();
    head.about = static_cast<std::uint8_t>((push.grant->wanted ? about_wanted : 0) |
                                           (push.grant->offer ? about_offer : 0));
  }
  return push.why.detail;
}

std::string_view put(packet_head& head, const spi::store_event& event) {
  set_kind(head, wire::event);
  // The public id: the claim's own id is the capability to unlock, and not for observers.
  std::copy_n(event.claim.begin(), std::min(event.claim.size(), std::size(head.claim)), head.claim);
  head.fence = event.fence.value_or(fence_token()).value();
  head.fenced = event.fence ? 1 : 0;
  head.mode = static_cast<std::uint8_t>(event.mode);
  head.event = static_cast<std::uint8_t>(event.kind);
  return event.payload;
}

ledgers::push push_in(const packet_head& head, std::string_view text) {
  ledgers::push push;
  push.what = static_cast<ledgers::push::kind>(head.kind - static_cast<unsigned>(wire::granted));
  std::ranges::copy(head.claim, push.claim.bytes.begin());
  if (push.what == ledgers::push::kind::granted) {
    push.grant.emplace();
    push.grant->fence = fence_token(head.fence);
    push.grant->ttl = duration(head.ttl);
    push.grant->at = spi::server_time(duration(head.at));
    push.grant->wanted = (head.about & about_wanted) != 0;
    push.grant->offer = (head.about & about_offer) != 0;
  } else if (push.what == ledgers::push::kind::gone) {
    push.kept = duration(head.ttl);
    push.why = {errc::lost, std::string(text)};
  }
  return push;
}

spi::store_event event_in(const packet_head& head, std::string_view key, std::string_view text) {
  spi::store_event event;
  event.kind = static_cast<spi::event_kind>(head.event);
  event.name = sql::resource_of(key).name;
  event.claim.assign(std::begin(head.claim), std::end(head.claim));
  event.mode = static_cast<spi::mode>(head.mode);
  if (head.fenced != 0) event.fence = fence_token(head.fence);
  event.payload = text;
  return event;
}

}  // namespace

std::string encode(const message& message) {
  packet_head head{};
  head.magic = magic;
  head.version = version;
  std::string_view text;
  switch (message.what) {
    case message::kind::hello:
      set_kind(head, wire::hello);
      head.client = message.from.number;
      text = message.from.token;
      break;
    case message::kind::push:
      text = put(head, message.push);
      break;
    case message::kind::event:
      text = put(head, message.event);
      break;
    case message::kind::latch:
      set_kind(head, wire::latch);
      break;
  }
  const std::string_view name =
      std::string_view(message.key).substr(0, message::max_size - sizeof head);
  text = text.substr(0, message::max_size - sizeof head - name.size());
  head.name_size = static_cast<std::uint16_t>(name.size());
  head.text_size = static_cast<std::uint16_t>(text.size());
  std::string packet(sizeof head, '\0');
  std::memcpy(packet.data(), &head, sizeof head);
  return packet.append(name).append(text);
}

std::optional<message> decode(std::string_view packet) {
  packet_head head{};
  if (packet.size() < sizeof head || packet.size() > message::max_size) return std::nullopt;
  std::memcpy(&head, packet.data(), sizeof head);
  if (head.magic != magic || head.version != version) return std::nullopt;
  if (packet.size() != sizeof head + head.name_size + head.text_size) return std::nullopt;
  if (head.mode > static_cast<std::uint8_t>(spi::mode::permit) ||
      head.event > static_cast<std::uint8_t>(spi::event_kind::forced)) {
    return std::nullopt;
  }
  const std::string_view text = packet.substr(sizeof head + head.name_size);
  message read;
  read.key = packet.substr(sizeof head, head.name_size);
  const auto kind = static_cast<wire>(head.kind);
  if (kind == wire::hello) {
    read.from = {head.client, std::string(text), 0};
  } else if (kind >= wire::granted && kind <= wire::gone) {
    read.what = message::kind::push;
    read.push = push_in(head, text);
  } else if (kind == wire::event) {
    read.what = message::kind::event;
    read.event = event_in(head, read.key, text);
  } else if (kind == wire::latch) {
    read.what = message::kind::latch;
  } else {
    return std::nullopt;
  }
  return read;
}

}  // namespace holdfast::sqlite
