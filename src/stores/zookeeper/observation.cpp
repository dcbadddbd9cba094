// Watches one name, or a whole namespace, and reports what changed there between two looks. Watches
// trigger each look; claims that came and went between two looks are not seen.
#include "stores/payload.hpp"
#include "stores/queued/observed.hpp"
#include "stores/zookeeper/line.hpp"
#include "stores/zookeeper/options.hpp"
#include "stores/zookeeper/session.hpp"
#include "stores/zookeeper/zookeeper_store.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

namespace {

constexpr duration look_limit = std::chrono::seconds(10);
constexpr duration pause_after_failure = std::chrono::seconds(1);

// Thread-safe. One look at a time; the sink is called under no lock.
class observation final : public std::enable_shared_from_this<observation> {
 public:
  observation(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<session> life,
              std::shared_ptr<const server_options> options, spi::resource_id resource,
              spi::function<void(const spi::store_event&)> sink);

  void start();
  // No event afterwards.
  void end();

 private:
  using people = stores::observed_claims;

  void wake();
  static flow run(std::shared_ptr<observation> self);
  static task<bool> look(std::shared_ptr<observation> self);
  static task<bool> look_at(std::shared_ptr<observation> self, std::string name);
  static task<result<std::vector<std::string>>> watched_list(std::shared_ptr<observation> self,
                                                             std::string path);
  static task<bool> read_new(std::shared_ptr<observation> self, std::string name, people& now);
  void tell_changes(const std::string& name, const people& now);
  [[nodiscard]] question watching(request what, const std::string& path);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<session> life_;
  const std::shared_ptr<const server_options> options_;
  const spi::resource_id resource_;
  stores::observer observer_;

  std::map<std::string, people> known_;  // by name; only within run()

  std::mutex mutex_;
  // All below: guarded by mutex_.
  bool running_ = false;
  bool dirty_ = false;
  std::set<std::pair<opcode, std::string>> armed_;
  std::set<std::string> changed_;  // paths whose data changed: a later end is by force
};

observation::observation(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<session> life,
                         std::shared_ptr<const server_options> options, spi::resource_id resource,
                         spi::function<void(const spi::store_event&)> sink)
    : reactor_(std::move(reactor)),
      life_(std::move(life)),
      options_(std::move(options)),
      resource_(std::move(resource)),
      observer_(std::move(sink)) {}

void observation::start() {
  life_->hold();
  wake();
}

void observation::end() {
  if (reactor_->forked()) return;
  observer_.callbacks.end();
  life_->unhold();
}

void observation::wake() {
  if (observer_.callbacks.ended()) return;
  {
    const std::scoped_lock lock(mutex_);
    dirty_ = true;
    if (std::exchange(running_, true)) return;
  }
  run(shared_from_this());
}

flow observation::run(std::shared_ptr<observation> self) {
  for (;;) {
    {
      const std::scoped_lock lock(self->mutex_);
      if (!std::exchange(self->dirty_, false) || self->observer_.callbacks.ended()) {
        self->running_ = false;
        co_return;
      }
    }
    const bool seen = co_await look(self);
    if (seen) continue;
    self->reactor_->at(self->reactor_->now() + pause_after_failure, [weak = std::weak_ptr(self)] {
      if (const auto alive = weak.lock()) alive->wake();
    });
  }
}

// The watch is set unless one is there already: each fires once and is then set again.
question observation::watching(request what, const std::string& path) {
  question made{std::move(what), nullptr, {}};
  const std::scoped_lock lock(mutex_);
  if (!armed_.emplace(made.what.what, path).second) return made;
  made.watched = path;
  made.watch = std::make_shared<watcher>(
      [weak = weak_from_this(), by = made.what.what, path](const watch_event& event) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        {
          const std::scoped_lock again(self->mutex_);
          self->armed_.erase({by, path});
          if (event.what == watch_event::type::data_changed) self->changed_.insert(path);
        }
        self->wake();
      });
  // The last byte of a read's body says whether it watches.
  made.what.body.back() = '\1';
  return made;
}

task<result<std::vector<std::string>>> observation::watched_list(std::shared_ptr<observation> self,
                                                                 std::string path) {
  const time_point deadline = self->reactor_->now() + look_limit;
  const std::string at = path.empty() ? "/" : path;
  question list = self->watching(make_get_children(at, false), at);
  const result<reply> answer = co_await ask_one(self->life_, std::move(list), deadline);
  if (!answer || answer->code != code::ok) {
    const std::scoped_lock lock(self->mutex_);
    self->armed_.erase({opcode::get_children, at});
  }
  if (!answer) co_return tl::unexpected(answer.error());
  if (answer->code == code::ok) co_return read_children(answer->body);
  if (answer->code != code::no_node) co_return tl::unexpected(refusal("list", at, answer->code));
  // Not there: we wait for its creation. It may have been created just now.
  question wait = self->watching(make_exists(at, false), at);
  const result<reply> there = co_await ask_one(self->life_, std::move(wait), deadline);
  if (!there) {
    const std::scoped_lock lock(self->mutex_);
    self->armed_.erase({opcode::exists, at});
    co_return tl::unexpected(there.error());
  }
  if (there->code == code::ok) {
    const std::scoped_lock lock(self->mutex_);
    self->dirty_ = true;
  }
  co_return std::vector<std::string>{};
}

// False: it could not be read.
task<bool> observation::look(std::shared_ptr<observation> self) {
  if (!self->resource_.name.empty()) co_return co_await look_at(self, self->resource_.name);
  const auto names = co_await watched_list(self, folder_of(*self->options_, self->resource_.space));
  if (!names) co_return false;
  bool all = true;
  for (const std::string& each : *names) {
    const auto name = decoded(each);
    if (!name || each == "zookeeper" || each.starts_with("_")) continue;
    const bool seen = co_await look_at(self, *name);
    all = all && seen;
  }
  co_return all;
}

task<bool> observation::look_at(std::shared_ptr<observation> self, std::string name) {
  spi::resource_id resource{self->resource_.space, name};
  const std::string path = path_of(*self->options_, resource);
  const auto around = co_await watched_list(self, path);
  if (!around) co_return false;
  people now;
  const line order(*around);
  for (std::size_t i = 0; i < order.nodes().size(); ++i) {
    const claim_node& node = order.nodes()[i];
    stores::observed_claim who;
    who.claim = id_text(node);
    who.mode = node.kind == claim_kind::reader ? spi::mode::shared : spi::mode::exclusive;
    who.holds = order.holds(i);
    who.token = path + "/" + node.name;
    now[{0, who.claim}] = std::move(who);
  }
  if (order.has_semaphore()) {
    for (const std::string_view folder : {locks_folder, leases_folder}) {
      std::string at = path + "/" + std::string(folder);
      const auto inside = co_await watched_list(self, at);
      if (!inside) co_return false;
      const line those(*inside);
      for (const claim_node& node : those.nodes()) {
        stores::observed_claim& who = now[{0, id_text(node)}];
        if (who.holds) continue;
        who.claim = id_text(node);
        who.mode = spi::mode::permit;
        who.holds = folder == leases_folder;
        who.token = at + "/" + node.name;
      }
    }
  }
  const bool read = co_await read_new(self, name, now);
  if (!read) co_return false;
  self->tell_changes(name, now);
  co_return true;
}

// New claims are read, and watched: a change of the data before the end means force.
task<bool> observation::read_new(std::shared_ptr<observation> self, std::string name, people& now) {
  const people& before = self->known_[name];
  std::vector<question> batch;
  std::vector<stores::observed_claim*> fresh;
  for (auto& [id, who] : now) {
    const auto old = before.find(id);
    if (old != before.end() && old->second.token == who.token) {
      who.fence = old->second.fence;
      who.payload = old->second.payload;
      continue;
    }
    batch.push_back(self->watching(make_get_data(who.token, false), who.token));
    fresh.push_back(&who);
  }
  if (batch.empty()) co_return true;
  const time_point deadline = self->reactor_->now() + look_limit;
  const replies answers = co_await asking(self->life_, std::move(batch), deadline);
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    stores::observed_claim& who = *fresh[i];
    if (!answers[i] || answers[i]->code != code::ok) {
      const std::scoped_lock lock(self->mutex_);
      self->armed_.erase({opcode::get_data, who.token});
    }
    if (!answers[i]) co_return false;
    const auto read = read_data(answers[i]->body);
    if (answers[i]->code != code::ok || !read) continue;  // gone by now: the next look reports it
    who.fence = stores::fence_of(read->stat.created);
    who.payload = stores::payload_in(read->data);
  }
  co_return true;
}

void observation::tell_changes(const std::string& name, const people& now) {
  people& before = known_[name];
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [id, who] : before) {
      if (!now.contains(id)) who.forced = changed_.erase(who.token) > 0;
    }
  }
  observer_.tell_changes(name, before, now);
  before = now;
  if (before.empty()) known_.erase(name);
}

}  // namespace

result<std::unique_ptr<spi::subscription>> zookeeper_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (closed_) return failure(errc::cancelled, "closed");
  auto made = std::make_shared<observation>(net_.reactor, any_session(), options_, resource,
                                            std::move(sink));
  made->start();
  return std::make_unique<stores::observing<observation>>(std::move(made));
}

}  // namespace holdfast::zookeeper
