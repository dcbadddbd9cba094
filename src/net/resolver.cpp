// The state outlives the resolver where a worker is still inside a look-up.
#include "net/resolver.hpp"

#include "runtime/service_thread.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::net {

namespace {

struct question {
  std::uint64_t id = 0;
  std::uint16_t port = 0;
  spi::runtime::timer_id timer = 0;
  spi::completion<addresses> done;
};

struct host_entry {
  bool looking = false;  // queued for a worker, or being asked
  addresses last_good;
  std::vector<question> questions;
};

addresses with_port(const addresses& from, std::uint16_t port) {
  addresses changed;
  for (const address& one : from) changed.push_back(one.with_port(port));
  return changed;
}

}  // namespace

struct resolver::state : std::enable_shared_from_this<state> {
  state(const std::shared_ptr<spi::reactor>& with, lookup how)
      : reactor(with), ask(std::move(how)) {}

  void resolve(const std::string& host, std::uint16_t port, time_point deadline,
               spi::completion<addresses> done);
  bool enqueue(const std::string& host);
  void start_worker();
  void work();
  result<addresses> ask_safely(const std::string& host) const;
  void answered(const std::string& host, result<addresses> answer);
  void out_of_time(const std::string& host, std::uint64_t id);
  void make_room();

  const std::weak_ptr<spi::reactor> reactor;
  const lookup ask;
  std::mutex mutex;
  // All below: guarded by mutex.
  std::map<std::string, host_entry> hosts;
  std::deque<std::string> queue;
  std::size_t workers = 0;
  std::uint64_t next_id = 1;
};

resolver::resolver(std::shared_ptr<spi::reactor> reactor, lookup ask)
    : state_(std::make_shared<state>(reactor, std::move(ask))) {}

resolver::~resolver() {
  // In a forked child a lock may be held forever by a thread that does not exist there: leaked
  // untouched.
  if (guard_.forked()) [[maybe_unused]]
    const auto* kept = new std::shared_ptr<state>(state_);
}

void resolver::resolve(const std::string& host, std::uint16_t port, time_point deadline,
                       spi::completion<addresses> done) {
  if (guard_.forked()) return done(failure(errc::cancelled, "forked from the client's process"));
  if (const auto known = address::numeric(host, port)) return done(addresses{*known});
  state_->resolve(host, port, deadline, std::move(done));
}

void resolver::state::resolve(const std::string& host, std::uint16_t port, time_point deadline,
                              spi::completion<addresses> done) {
  const std::shared_ptr<spi::reactor> engine = reactor.lock();
  if (engine == nullptr) return done(failure(errc::cancelled, "closed"));
  std::unique_lock lock(mutex);
  make_room();
  host_entry& entry = hosts[host];
  if (!entry.looking) {
    if (!enqueue(host)) {
      lock.unlock();
      return done(failure(errc::unavailable, "too many names are being resolved at once"));
    }
    entry.looking = true;
  }
  const std::uint64_t id = next_id++;
  time_point limit = deadline;
  if (!entry.last_good.empty()) limit = std::min(limit, engine->now() + patience);
  const auto timer = engine->at(limit, [weak = weak_from_this(), host, id] {
    if (const auto self = weak.lock()) self->out_of_time(host, id);
  });
  entry.questions.push_back({id, port, timer, std::move(done)});
}

// Called with the mutex held. False: the queue is full, or no thread can be made.
bool resolver::state::enqueue(const std::string& host) {
  if (queue.size() >= queue_limit) return false;
  queue.push_back(host);
  if (workers >= worker_limit) return true;
  try {
    start_worker();
  } catch (const std::system_error&) {
    if (workers > 0) return true;  // an existing worker takes it
    queue.pop_back();
    return false;
  }
  return true;
}

void resolver::state::start_worker() {
  auto thread =
      runtime::start_service("holdfast-names", [self = shared_from_this()] { self->work(); });
  ++workers;
  thread->detach();
}

result<addresses> resolver::state::ask_safely(const std::string& host) const {
  try {
    return ask(host);
  } catch (const std::exception& problem) {
    return failure(errc::unavailable, "cannot resolve '" + host + "': " + problem.what());
  }
}

void resolver::state::work() {
  std::unique_lock lock(mutex);
  while (!queue.empty()) {
    const std::string host = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    result<addresses> answer = ask_safely(host);
    // Callers are answered on the reactor; without one nobody is waiting.
    if (const auto engine = reactor.lock()) {
      engine->post([weak = weak_from_this(), host, found = std::move(answer)]() mutable {
        if (const auto self = weak.lock()) self->answered(host, std::move(found));
      });
    }
    lock.lock();
  }
  --workers;
}

void resolver::state::answered(const std::string& host, result<addresses> answer) {
  std::unique_lock lock(mutex);
  host_entry& entry = hosts[host];
  entry.looking = false;
  if (answer && !answer->empty()) entry.last_good = *answer;
  if (!answer && !entry.last_good.empty()) answer = entry.last_good;
  std::vector<question> questions = std::exchange(entry.questions, {});
  lock.unlock();
  const auto engine = reactor.lock();
  for (question& one : questions) {
    if (engine != nullptr) engine->cancel(one.timer);
    if (answer) {
      one.done(with_port(*answer, one.port));
    } else {
      one.done(tl::unexpected(answer.error()));
    }
  }
}

void resolver::state::out_of_time(const std::string& host, std::uint64_t id) {
  std::unique_lock lock(mutex);
  const auto found = hosts.find(host);
  if (found == hosts.end()) return;
  auto& questions = found->second.questions;
  const auto mine = std::ranges::find(questions, id, &question::id);
  if (mine == questions.end()) return;
  question asked = std::move(*mine);
  questions.erase(mine);
  const addresses known = with_port(found->second.last_good, asked.port);
  lock.unlock();
  if (!known.empty()) return asked.done(known);
  asked.done(failure(errc::unavailable, "cannot resolve '" + host + "': no answer in time"));
}

// Called with the mutex held.
void resolver::state::make_room() {
  if (hosts.size() < cache_limit) return;
  std::erase_if(hosts, [](const auto& item) { return !item.second.looking; });
}

}  // namespace holdfast::net
