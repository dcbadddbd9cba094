// The store's life: opening, the way of a verb to its thread, closing.
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

// For what close() still writes. What is not written by then is cleared away by who comes next.
constexpr duration closing_limit = std::chrono::milliseconds(500);

spi::caps capabilities() {
  spi::caps caps;
  caps.engine = "sqlite";
  caps.expires = false;
  caps.supports_detach = true;
  return caps;
}

// 128 random bits: the files' names are not to be guessed, nor to meet.
std::string new_token(spi::reactor& reactor) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string token;
  for (int half = 0; half < 2; ++half) {
    std::uint64_t bits = reactor.random();
    for (int digit = 0; digit < 16; ++digit, bits >>= 4U) token += digits[bits & 15U];
  }
  return token;
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
  auto joined = join(*session_, *folder_, *here, new_token(*reactor_), deadline);
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
  // In a forked child: the parent's locks, sockets and threads are the parent's. Left alone, as
  // they may be in the middle of anything.
  if (worker_) worker_->abandon();
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

// Here, or where this call must not block, on the worker. The verbs on one resource that
// follow each other keep their order: who tries after a wait does not meet its own place in line.
template <class T, class Verb>
void sqlite_store::perform(const spi::claim* of, const spi::op_context& context,
                           spi::completion<T> done, Verb verb) {
  if (auto begun = begin_verb(); !begun) return done(tl::unexpected(std::move(begun.error())));
  if (context.in_passing || reactor_->on_own_thread() ||
      (of != nullptr && local_claims_->pending(of->resource))) {
    return hop<T>(of, context, std::move(done), std::move(verb));
  }
  result<T> answer = verb(*this, context.deadline);
  end_verb();
  done(std::move(answer));
}

template <class T, class Verb>
void sqlite_store::hop(const spi::claim* of, const spi::op_context& context,
                       spi::completion<T> done, Verb verb) {
  struct job {
    std::shared_ptr<sqlite_store> store;
    std::optional<spi::resource_id> on;
    time_point deadline;
    spi::completion<T> done;
    Verb verb;

    void finish(result<T> answer) {
      if (on) store->local_claims_->end_pending(*on);
      store->end_verb();
      done(std::move(answer));
    }
  };
  const auto work = std::make_shared<job>(
      job{shared_from_this(), of != nullptr ? std::optional(of->resource) : std::nullopt,
          context.deadline, std::move(done), std::move(verb)});
  if (of != nullptr) local_claims_->add_pending(of->resource);
  const bool posted = worker_->post(
      context.deadline, [work] { work->finish(work->verb(*work->store, work->deadline)); },
      [work] { work->finish(failure(errc::unavailable, "sqlite, not begun in time")); });
  if (!posted) work->finish(failure(errc::overloaded, "sqlite, too many operations wait"));
}

void sqlite_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                           const spi::op_context& context, spi::completion<spi::outcome> done) {
  const spi::claim& of = *claim;
  perform(&of, context, std::move(done),
          [claim, wakeup = std::move(wakeup)](sqlite_store& self, time_point deadline) {
            const std::int64_t place = self.local_claims_->enlist(claim, wakeup);
            return self.do_attempt(*claim, place, deadline);
          });
}

// Whoever would wait is queued here; who only tries may ask again.
void sqlite_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                         spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

void sqlite_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                         spi::completion<spi::departure> done) {
  const spi::claim& of = *claim;
  perform(&of, context, std::move(done), [claim](sqlite_store& self, time_point deadline) {
    return self.do_leave(*claim, deadline);
  });
}

void sqlite_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                         spi::completion<std::vector<spi::renewal>> done) {
  perform(nullptr, context, std::move(done),
          [claims = std::move(claims)](sqlite_store& self, time_point deadline) {
            return self.do_renew(claims, deadline);
          });
}

void sqlite_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                          spi::completion<spi::granted> done) {
  const spi::claim& of = *claim;
  perform(&of, context, std::move(done), [claim, to](sqlite_store& self, time_point deadline) {
    return self.do_change(*claim, to, deadline);
  });
}

void sqlite_store::transfer(const spi::claim_id& from, spi::claim_ptr to,
                            std::shared_ptr<spi::wakeup> wakeup, const spi::op_context& context,
                            spi::completion<spi::granted> done) {
  const spi::claim& of = *to;
  perform(&of, context, std::move(done),
          [from, to, wakeup = std::move(wakeup)](sqlite_store& self, time_point deadline) {
            return self.do_transfer(from, to, wakeup, deadline);
          });
}

void sqlite_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                           spi::completion<spi::resource_state> done) {
  perform(nullptr, context, std::move(done), [resource](sqlite_store& self, time_point deadline) {
    return self.do_inspect(resource, deadline);
  });
}

void sqlite_store::list(const std::string& space, const std::string& prefix,
                        const spi::op_context& context,
                        spi::completion<std::vector<spi::resource_summary>> done) {
  perform(nullptr, context, std::move(done),
          [space, prefix](sqlite_store& self, time_point deadline) {
            return self.do_list(space, prefix, deadline);
          });
}

void sqlite_store::revoke(const spi::resource_id& resource, spi::revocation how,
                          const std::string& claim, const spi::op_context& context,
                          spi::completion<std::vector<spi::holder>> done) {
  perform(nullptr, context, std::move(done),
          [resource, how, claim](sqlite_store& self, time_point deadline) {
            return self.do_revoke(resource, how, claim, deadline);
          });
}

void sqlite_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                                const spi::op_context& context,
                                spi::completion<spi::latch_state> done) {
  perform(nullptr, context, std::move(done),
          [resource, change](sqlite_store& self, time_point deadline) {
            return self.do_change_latch(resource, change, deadline);
          });
}

void sqlite_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                              spi::completion<spi::latch_state> done) {
  perform(nullptr, context, std::move(done), [resource](sqlite_store& self, time_point deadline) {
    return self.do_read_latch(resource, deadline);
  });
}

void sqlite_store::probe(const spi::op_context& context,
                         spi::completion<std::vector<spi::check>> done) {
  perform(nullptr, context, std::move(done),
          [](sqlite_store& self, time_point deadline) { return self.do_probe(deadline); });
}

// One descriptor that keeps two files open: the sign of life, and the listening socket, whose
// connections tell waiters at once when the last process that has it ends. Both are in flight in
// the queue of the socket that is given away, and stay there as long as it is open anywhere.
int sqlite_store::life_descriptor() const noexcept {
  if (!begin_verb()) return -1;
  take_up_all();
  const int made = parcel_of_life();
  end_verb();
  return made;
}

// Not fatal: then its owner, if it lives, learns that it was lost.
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
    // Not forever: it may be a verb's own wake-up that ended in here.
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
    // Where the database still names this client, its file stays: unlocked, it shows that the client
    // is dead. Without a name only its inode could be looked for, which another may have by now.
    if (left) folder_->remove(self_.token);
    life_.reset();
  }
}

bool sqlite_store::leave_database() noexcept {
  const time_point deadline = clock::now() + closing_limit;
  bool left = true;
  if (!broken()) {
    effects out;
    const auto dead = peer_notifier_->dead();
    const auto claims = local_claims_->claims();
    const auto done = session_->write(deadline, [&](ledger& book) {
      const moment step = step_of(out, *dead);
      for (const spi::claim_ptr& claim : claims)
        book.leave(step, *claim, local_claims_->place(claim->id));
      run(session_->prepared().delete_observers_of, self_.number);
      run(session_->prepared().delete_client, self_.number);
    });
    for (const spi::claim_ptr& claim : claims) local_claims_->strike(claim->id);
    if (done) peer_notifier_->deliver(out, deadline);
    left = done.has_value();
  }
  return left;
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
