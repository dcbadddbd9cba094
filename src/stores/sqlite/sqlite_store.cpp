// The store's life: opening, upkeep, closing, and handing on its sign of life.
#include "stores/sqlite/sqlite_store.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace holdfast::sqlite {

namespace {

// For what close() still writes. The next client cleans up what is not written by then.
constexpr duration closing_limit = std::chrono::milliseconds(500);
constexpr duration upkeep_interval = std::chrono::seconds(1);
constexpr duration repay_limit = std::chrono::seconds(5);

spi::caps capabilities() {
  spi::caps caps;
  caps.engine = "sqlite";
  caps.expires = false;
  caps.supports_detach = true;
  return caps;
}

}  // namespace

sqlite_store::sqlite_store(std::shared_ptr<spi::reactor> reactor)
    : reactor_(std::move(reactor)), caps_(capabilities()) {}

result<std::shared_ptr<sqlite_store>> sqlite_store::open(std::shared_ptr<spi::reactor> reactor,
                                                         const open_options& options) {
  std::shared_ptr<sqlite_store> made(new sqlite_store(std::move(reactor)));
  if (auto started = made->start(options); !started) {
    return tl::unexpected(std::move(started.error()));
  }
  return made;
}

result<void> sqlite_store::start(const open_options& options) {
  const time_point deadline = clock::now() + options.deadline;
  auto here = options.here ? result<host>(*options.here) : this_host();
  if (!here) return tl::unexpected(std::move(here.error()));
  auto at = locate(options.path);
  if (!at) return tl::unexpected(std::move(at.error()));
  auto beside = folder::open(*at);
  if (!beside) return tl::unexpected(std::move(beside.error()));
  folder_ = std::make_shared<const folder>(std::move(*beside));
  auto writer_lock = writer_lock::open(folder_->get(), folder_->path(), folder_->file_mode());
  if (!writer_lock) return tl::unexpected(std::move(writer_lock.error()));
  auto opened = session::open(*at, std::move(*writer_lock), deadline);
  if (!opened) {
    const error& why = opened.error();
    if (why == errc::name_conflict || why == errc::unsupported) forsake(*at);
    return tl::unexpected(std::move(opened.error()));
  }
  session_ = std::move(*opened);
  auto joined = join(*session_, *folder_, *here, sql::fresh_process(*reactor_), deadline);
  if (!joined) return tl::unexpected(std::move(joined.error()));
  self_ = std::move(joined->self);
  life_.emplace(std::move(joined->life));
  cleared_ = joined->cleared;
  session_->reserve_log();
  subscribers_ = std::make_shared<sql::subscribers>([weak = weak_from_this()](const auto& over) {
    const auto self = weak.lock();
    if (!self) return;
    for (const auto* keys : {&over.events, &over.latches}) {
      for (const std::string& key : *keys) self->forget_observer(key);
    }
  });
  worker_ = std::make_unique<worker>(reactor_);
  peer_notifier_ = std::make_shared<peer_notifier>(reactor_, session_, folder_, local_claims_,
                                                   subscribers_, self_);
  if (auto listening = peer_notifier_->open(); !listening) return listening;
  peer_notifier_->deliver(joined->caused, deadline);
  return {};
}

sqlite_store::~sqlite_store() {
  if (born_ == fork_generation()) {
    close();
    return;
  }
  // In a forked child: locks, sockets and threads belong to the parent. They are not touched, as
  // they may be in any intermediate state.
  [[maybe_unused]] const auto* database =
      new (std::nothrow) std::shared_ptr<session>(std::move(session_));
  [[maybe_unused]] const auto* post =
      new (std::nothrow) std::shared_ptr<peer_notifier>(std::move(peer_notifier_));
  [[maybe_unused]] const auto* thread = worker_.release();
}

result<void> sqlite_store::begin_verb() const {
  if (born_ != fork_generation()) return failure(errc::cancelled, "sqlite, in a forked child");
  const std::lock_guard lock(mutex_);
  if (closed_) return failure(errc::cancelled, "sqlite, the store is closed");
  ++verbs_;
  return {};
}

void sqlite_store::end_verb() const noexcept {
  const std::lock_guard lock(mutex_);
  if (--verbs_ == 0 && closed_) idle_.notify_all();
}

// One descriptor that keeps two files open: the sign of life, and the listening socket, whose
// connections notify waiters at once when the last process that has it ends. Both are in flight in
// the queue of the socket that is given away, and stay there as long as it is open anywhere.
int sqlite_store::life_descriptor() const noexcept {
  if (!begin_verb()) return -1;
  take_up_all();
  const int made = parcel_of_life();
  end_verb();
  return made;
}

// Not fatal: its owner, if it lives, then learns that it was lost.
void sqlite_store::take_up_all() const noexcept {
  try {
    effects out;
    const auto dead = peer_notifier_->dead();
    const auto done = session_->write(clock::now() + closing_limit, [&](ledger& book) {
      const moment step = step_of(out, *dead);
      for (const spi::claim_ptr& claim : local_claims_->claims()) {
        book.take_up(step, *claim, local_claims_->place(claim->id));
      }
    });
    if (done) peer_notifier_->deliver(out, clock::now() + closing_limit);
  } catch (const std::bad_alloc&) {
    return;
  }
}

int sqlite_store::parcel_of_life() const noexcept {
  std::array<int, 2> ends{-1, -1};
  const std::array<int, 2> files{life_->share(), peer_notifier_->share()};
  bool packed = files[0] >= 0 && files[1] >= 0 &&
                ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0;
  if (packed) {
    char byte = 0;
    iovec content{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof files)> control{};
    msghdr parcel{};
    parcel.msg_iov = &content;
    parcel.msg_iovlen = 1;
    parcel.msg_control = control.data();
    parcel.msg_controllen = control.size();
    cmsghdr* head = CMSG_FIRSTHDR(&parcel);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof files);
    std::memcpy(CMSG_DATA(head), files.data(), sizeof files);
    packed = ::sendmsg(ends[0], &parcel, MSG_NOSIGNAL) == 1;
  }
  if (ends[0] >= 0) ::close(ends[0]);
  if (files[1] >= 0) ::close(files[1]);
  if (packed) {
    struct stat status {};
    if (::fstat(ends[1], &status) == 0) life_->give_away(status.st_ino);
    ::close(files[0]);
    return ends[1];
  }
  // Then the sign of life alone: safe, and its end is noticed within a second.
  if (ends[1] >= 0) ::close(ends[1]);
  return files[0];
}

void sqlite_store::close() noexcept {
  if (born_ != fork_generation()) return;
  {
    std::unique_lock lock(mutex_);
    if (std::exchange(closed_, true)) return;
  }
  if (worker_) worker_->close();
  {
    // Not forever: we may be inside a verb's own wake-up.
    std::unique_lock lock(mutex_);
    idle_.wait_for(lock, closing_limit, [this] { return verbs_ == 0; });
  }
  if (subscribers_) subscribers_->close();
  bool left = true;
  if (peer_notifier_) {
    left = leave_database();
    peer_notifier_->close();
  }
  if (life_) {
    // If the database still has this client, its file stays: unlocked, it shows that the client is
    // dead. Without a name only its inode could be looked for, which another file may have by then.
    if (left) folder_->remove(self_.token);
    life_.reset();
  }
}

bool sqlite_store::leave_database() noexcept {
  if (!intact()) return false;
  const time_point deadline = clock::now() + closing_limit;
  effects out;
  const auto dead = peer_notifier_->dead();
  const peer_notifier::numbers self{self_.number};
  const auto claims = local_claims_->claims();
  // A hold with a lock delay that was not released ends as if this client had died.
  const auto dies = [this](const spi::claim_ptr& claim) {
    return claim->lock_delay > duration{0} && !local_claims_->is_owed(claim->id);
  };
  const auto done = session_->write(deadline, [&](ledger& book) {
    const moment step = step_of(out, *dead);
    for (const spi::claim_ptr& claim : claims) {
      std::int64_t place = local_claims_->place(claim->id);
      if (!dies(claim)) book.leave(with_place(step, place), *claim);
    }
    if (std::ranges::any_of(claims, dies)) book.purge(step_of(out, self));
    book.forget_client(self_.number);
  });
  for (const spi::claim_ptr& claim : claims) local_claims_->strike(claim->id);
  if (done) peer_notifier_->deliver(out, deadline);
  return done.has_value();
}

// The store's own upkeep, once a second while it has claims or listeners: checks that the files are
// still its own, repeats unanswered releases, and finds latch changes that may have been missed.
// Nothing here is time-critical; it limits what is lost.
void sqlite_store::schedule_upkeep() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || std::exchange(upkeep_scheduled_, true)) return;
  }
  reactor_->at(reactor_->now() + upkeep_interval, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->keep_up();
  });
}

// On the reactor's thread: looks at files, runs no transaction.
void sqlite_store::keep_up() {
  if (!begin_verb()) return;
  {
    const std::lock_guard lock(mutex_);
    upkeep_scheduled_ = false;
  }
  if (intact() && (!local_claims_->empty() || !subscribers_->empty())) {
    look_after();
    schedule_upkeep();
  }
  end_verb();
}

void sqlite_store::look_after() {
  auto fine = session_->in_place();
  if (fine && life_->deleted()) {
    fine = failure(errc::unavailable,
                   "sqlite, " + folder_->path() + " was deleted while in use: its locks are lost");
  }
  if (!fine) return mark_broken(fine.error());
  subscribers_->tell_all_latches();
  if (!local_claims_->owed().empty()) {
    worker_->post(clock::now() + repay_limit, [weak = weak_from_this()](const result<void>& begun) {
      const auto self = weak.lock();
      if (begun && self) self->repay();
    });
  }
}

result<void> sqlite_store::intact() const {
  const std::lock_guard lock(mutex_);
  if (broken_) return tl::unexpected(*broken_);
  return {};
}

// A client that opens the path from now on sees none of our claims. Even if the files come back,
// this store is not used again: it no longer knows what it has in them.
void sqlite_store::mark_broken(const error& why) {
  {
    const std::lock_guard lock(mutex_);
    if (broken_) return;
    broken_ = why;
  }
  const error lost{errc::lost, why.detail};
  for (const spi::claim_ptr& claim : local_claims_->claims()) {
    const auto wakeup = local_claims_->find(claim->id);
    local_claims_->strike(claim->id);
    if (wakeup) wakeup->gone(lost);
  }
}

// For a transaction: if it failed because the file is not the one that was opened,
// all holders are notified.
result<void> sqlite_store::noticed(result<void> done) {
  if (done) return done;
  if (auto fine = session_->in_place(); !fine) mark_broken(fine.error());
  return done;
}

void sqlite_store::repay() {
  if (!begin_verb()) return;
  for (const spi::claim_ptr& claim : local_claims_->owed()) {
    if (!do_leave(*claim, clock::now() + repay_limit)) break;
  }
  end_verb();
}

// From a URL to a store.
result<std::shared_ptr<spi::store>> open_sqlite(const spi::url& url,
                                                std::shared_ptr<spi::reactor> reactor) {
  if (auto known = spi::check_options(url, {}); !known) {
    return tl::unexpected(std::move(known.error()));
  }
  if (!url.hosts.empty() || !url.user.empty() || !url.password.empty()) {
    return failure(errc::invalid, "URL: sqlite: has no host; write sqlite:/path/file.db");
  }
  open_options options;
  options.path = url.path;
  auto opened = sqlite_store::open(std::move(reactor), options);
  if (!opened) return tl::unexpected(std::move(opened.error()));
  return std::shared_ptr<spi::store>(std::move(*opened));
}

}  // namespace holdfast::sqlite
