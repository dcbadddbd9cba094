// The memory store: each verb is one step of the hub.
#include "stores/memory/memory_store.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

namespace holdfast::memory {

namespace {

spi::caps capabilities() {
  spi::caps caps;
  caps.engine = "memory";
  caps.excludes_processes = false;
  caps.can_vote = true;
  caps.supports_detach = true;
  return caps;
}

// The one table that is global to a process: the names under which several clients share their
// claims. A name outlives its clients, like a server: otherwise its fences would start over, and an
// unreleased lease would end with its client.
constexpr std::size_t names_at_most = 1'000;

result<std::shared_ptr<hub>> shared_hub(const std::string& name) {
  struct table {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<hub>> hubs;  // guarded by mutex
  };
  static table& names = *new table;  // never destroyed: clients may outlive main()
  const std::lock_guard lock(names.mutex);
  const auto known = names.hubs.find(name);
  if (known != names.hubs.end()) return known->second;
  if (names.hubs.size() >= names_at_most) {
    return failure(errc::overloaded,
                   "memory: more than " + std::to_string(names_at_most) + " names");
  }
  return names.hubs.emplace(name, std::make_shared<hub>()).first->second;
}

tl::unexpected<error> refusal() { return failure(errc::cancelled, "memory: closed"); }

}  // namespace

memory_store::memory_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<hub> server)
    : runtime_(std::move(runtime)),
      hub_(std::move(server)),
      process_(hub_->join()),
      caps_(capabilities()) {}

memory_store::~memory_store() { close(); }

template <class T, class Verb>
void memory_store::answer(spi::completion<T>& done, Verb&& verb) {
  if (closed_.load(std::memory_order_acquire)) {
    done(refusal());
    return;
  }
  done(hub_->run(*runtime_, std::forward<Verb>(verb)));
}

void memory_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                           const spi::op_context&, spi::completion<spi::outcome> done) {
  auto answer = hub_->attempt(*runtime_, process_, claim, std::move(wakeup));
  auto* grant = answer ? std::get_if<spi::granted>(&*answer) : nullptr;
  if (grant != nullptr) grant->server = identity();
  done(std::move(answer));
}

// No waiter is turned away here, so there is nothing to watch: a try just asks again.
void memory_store::watch(spi::claim_ptr, const spi::blocked&, const spi::op_context&,
                         spi::completion<spi::armed> done) {
  done(spi::armed::recheck);
}

void memory_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                         spi::completion<spi::departure> done) {
  if (closed_.load(std::memory_order_acquire)) {
    done(refusal());
    return;
  }
  done(hub_->leave(*runtime_, process_, *claim,
                   context.unanswered ? on_leave::remember : on_leave::forget));
}

void memory_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context&,
                         spi::completion<std::vector<spi::renewal>> done) {
  answer(done, [&](ledger& book, spi::server_time now, effects& out) {
    std::vector<spi::renewal> answers;
    answers.reserve(claims.size());
    for (const spi::claim_ptr& claim : claims) {
      answers.push_back(book.renew(now, *claim, process_, out));
    }
    return answers;
  });
}

void memory_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context&,
                          spi::completion<spi::granted> done) {
  answer(done, [&](ledger& book, spi::server_time now, effects& out) {
    return book.change(now, *claim, to, process_, out);
  });
}

void memory_store::transfer(const spi::claim_id& from, spi::claim_ptr to,
                            std::shared_ptr<spi::wakeup> wakeup, const spi::op_context& context,
                            spi::completion<spi::granted> done) {
  done(hub_->transfer(*runtime_, process_, from, to, std::move(wakeup),
                      context.unanswered ? on_leave::remember : on_leave::forget));
}

void memory_store::raise(spi::claim_ptr claim, fence_token fence, const spi::op_context&,
                         spi::completion<spi::granted> done) {
  answer(done, [&](ledger& book, spi::server_time now, effects& out) {
    return book.raise(now, *claim, fence, process_, out);
  });
}

std::uint64_t memory_store::identity() const noexcept {
  return static_cast<std::uint64_t>(std::hash<const hub*>{}(hub_.get()));
}

void memory_store::inspect(const spi::resource_id& resource, const spi::op_context&,
                           spi::completion<spi::resource_state> done) {
  answer(done, [&](ledger& book, spi::server_time now, effects& out) {
    return book.inspect(now, resource, out);
  });
}

void memory_store::list(const std::string& space, const std::string& prefix, const spi::op_context&,
                        spi::completion<std::vector<spi::resource_summary>> done) {
  answer(done, [&](ledger& book, spi::server_time now, effects& out) {
    return book.list(now, space, prefix, out);
  });
}

void memory_store::revoke(const spi::resource_id& resource, spi::revocation how,
                          const std::string& claim, const spi::op_context&,
                          spi::completion<std::vector<spi::holder>> done) {
  answer(done, [&](ledger& book, spi::server_time now, effects& out) {
    return book.revoke(now, resource, how, claim, out);
  });
}

result<std::unique_ptr<spi::subscription>> memory_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (closed_.load(std::memory_order_acquire)) return refusal();
  return hub_->observe(resource, std::move(sink));
}

void memory_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                                const spi::op_context&, spi::completion<spi::latch_state> done) {
  answer(done, [&](ledger& book, spi::server_time now, effects& out) {
    return book.change_latch(now, resource, change, out);
  });
}

void memory_store::read_latch(const spi::resource_id& resource, const spi::op_context&,
                              spi::completion<spi::latch_state> done) {
  answer(done, [&](ledger& book, spi::server_time now, effects& out) {
    return book.read_latch(now, resource, out);
  });
}

result<std::unique_ptr<spi::subscription>> memory_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (closed_.load(std::memory_order_acquire)) return refusal();
  return hub_->watch_latch(resource, std::move(on_change));
}

void memory_store::probe(const spi::op_context&, spi::completion<std::vector<spi::check>> done) {
  std::vector<spi::check> checks;
  checks.push_back({"engine", spi::check::status::ok, "memory answers", ""});
  checks.push_back({"exclusion", spi::check::status::warn,
                    "memory: excludes nobody outside this process",
                    "use sqlite: for one machine, redis:// for several"});
  done(std::move(checks));
}

void memory_store::close() noexcept {
  if (closed_.exchange(true, std::memory_order_acq_rel)) return;
  hub_->leave(process_);
}

result<std::shared_ptr<spi::store>> open_memory(const spi::url& url,
                                                std::shared_ptr<spi::runtime> runtime) {
  if (auto known = spi::check_options(url, {}); !known) {
    return tl::unexpected(std::move(known.error()));
  }
  if (!url.hosts.empty() || !url.user.empty() || !url.password.empty()) {
    return failure(errc::invalid, "URL: memory: has no host; write memory: or memory:NAME");
  }
  if (url.path.empty()) {
    return std::make_shared<memory_store>(std::move(runtime), std::make_shared<hub>());
  }
  auto server = shared_hub(url.path);
  if (!server) return tl::unexpected(std::move(server.error()));
  return std::make_shared<memory_store>(std::move(runtime), *std::move(server));
}

}  // namespace holdfast::memory
