// The latch: a node with the count, changed by compare-and-set, and below it a mark for every
// count-down that was made, so that each counts once. Its age is judged by the server's clock.
#include "stores/callback_guard.hpp"
#include "stores/zookeeper/zookeeper_store.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::zookeeper {

namespace {

constexpr int change_limit = 200;         // others were faster each time
constexpr std::size_t clear_batch = 500;  // marks removed in one go
constexpr duration stamp_life = std::chrono::seconds(10);
constexpr std::string_view version = "holdfast/1";

std::string node_of(const std::string& path) { return path + "/" + std::string(count_node); }

std::string text_of_count(std::uint32_t count, duration life, const std::string& set_by) {
  return std::string(version) + " " + std::to_string(count) + " " +
         std::to_string(life / std::chrono::milliseconds(1)) + " " + set_by;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

template <class Number>
bool parse(std::string_view text, Number& into) {
  return std::from_chars(text.data(), text.data() + text.size(), into).ec == std::errc{};
}

constexpr duration arm_limit = std::chrono::seconds(30);

// Watches the count for as long as somebody wants to hear of it. Thread-safe.
class latch_watching final : public std::enable_shared_from_this<latch_watching> {
 public:
  latch_watching(std::shared_ptr<session> life, std::string node, spi::latch_watch on_change)
      : life_(std::move(life)), node_(std::move(node)), on_change_(std::move(on_change)) {}

  void arm() {
    auto fire = std::make_shared<watcher>([weak = weak_from_this()](const watch_event&) {
      if (const auto self = weak.lock()) self->changed();
    });
    send(life_, node_, std::move(fire));
  }
  void end() { callbacks_.end(); }

 private:
  static flow send(std::shared_ptr<session> life, std::string node, std::shared_ptr<watcher> fire) {
    std::vector<question> batch;
    batch.push_back({make_exists(node, true), std::move(fire), node});
    co_await asking(std::move(life), std::move(batch), clock::now() + arm_limit);
  }
  void changed() {
    if (callbacks_.ended()) return;
    arm();  // before it is told: nothing is missed
    callbacks_.run([this] { on_change_(); });
  }

  const std::shared_ptr<session> life_;
  const std::string node_;
  spi::latch_watch on_change_;  // only by callbacks_
  stores::callback_guard callbacks_;
};

class latch_subscription final : public spi::subscription {
 public:
  explicit latch_subscription(std::shared_ptr<latch_watching> what) : what_(std::move(what)) {}
  latch_subscription(const latch_subscription&) = delete;
  latch_subscription& operator=(const latch_subscription&) = delete;
  ~latch_subscription() override { what_->end(); }

 private:
  const std::shared_ptr<latch_watching> what_;
};

}  // namespace

task<result<zookeeper_store::count>> zookeeper_store::read_count(self_ptr self, std::string path,
                                                                 net::patience until) {
  const auto life = self->any_session();
  std::vector<question> batch;
  batch.push_back({make_barrier(), nullptr, {}});
  batch.push_back({make_get_data(node_of(path), false), nullptr, {}});
  const replies answers = co_await asking(life, std::move(batch), until);
  const result<reply>& answer = answers[1];
  if (!answer) co_return tl::unexpected(answer.error());
  if (answer->code == code::no_node) co_return count{};
  if (answer->code != code::ok) co_return tl::unexpected(refusal("read", path, answer->code));
  const auto read = read_data(answer->body);
  if (!read) co_return tl::unexpected(read.error());
  const auto words = words_of(read->data);
  count known;
  std::uint32_t value = 0;
  std::int64_t milliseconds = 0;
  if (words.size() != 4 || words[0] != version || !parse(words[1], value) ||
      !parse(words[2], milliseconds)) {
    co_return failure(errc::name_conflict,
                      "zookeeper: " + node_of(path) + " is not a holdfast latch");
  }
  const result<std::int64_t> time = co_await server_clock(self, path, until);
  if (!time) co_return tl::unexpected(time.error());
  known.version = read->stat.version;
  known.life = std::chrono::milliseconds(milliseconds);
  known.set_by = words[3];
  if (*time - read->stat.changed_at <= milliseconds) known.value = value;
  co_return known;
}

// Milliseconds of the leader's clock: what it stamps on a node that is made and removed for it.
// Between two of these our own clock counts on.
task<result<std::int64_t>> zookeeper_store::server_clock(self_ptr self, std::string path,
                                                         net::patience until) {
  const auto life = self->any_session();
  const std::string node = node_of(path) + "/clock";
  const time_point before = self->now();
  {
    const lock_guard lock(self->mutex_);
    const duration since = before - self->stamp_at_;
    if (self->stamp_ != 0 && since < stamp_life) {
      co_return self->stamp_ + since / std::chrono::milliseconds(1);
    }
  }
  question make{
      make_create(node, {}, node_kind::ephemeral_sequential, self->options_->acl), nullptr, {}};
  const result<reply> made = co_await ask_one(life, std::move(make), until);
  if (!made) co_return tl::unexpected(made.error());
  if (made->code != code::ok) co_return tl::unexpected(refusal("create", node, made->code));
  const auto stamp = read_created(made->body);
  if (!stamp) co_return tl::unexpected(stamp.error());
  question remove{make_remove(stamp->path), nullptr, {}};
  const result<reply> removed = co_await ask_one(life, std::move(remove), until);
  if (!removed) co_return tl::unexpected(removed.error());
  const lock_guard lock(self->mutex_);
  self->stamp_ = stamp->stat.changed_at;
  self->stamp_at_ = before;
  co_return stamp->stat.changed_at;
}

task<result<void>> zookeeper_store::clear_latch(self_ptr self, std::string path,
                                                net::patience until) {
  const auto life = self->any_session();
  const std::string node = node_of(path);
  const result<children> marks = co_await list_children(life, node, freshness::any, until);
  if (!marks) co_return tl::unexpected(marks.error());
  for (std::size_t from = 0; from < marks->size(); from += clear_batch) {
    std::vector<question> batch;
    for (std::size_t i = from; i < std::min(from + clear_batch, marks->size()); ++i) {
      batch.push_back({make_remove(node + "/" + (*marks)[i]), nullptr, {}});
    }
    const replies answers = co_await asking(life, std::move(batch), until);
    for (const result<reply>& each : answers) {
      if (!each) co_return tl::unexpected(each.error());
    }
  }
  co_return result<void>{};
}

task<result<spi::latch_state>> zookeeper_store::set_count(self_ptr self, std::string path,
                                                          spi::latch_change change,
                                                          net::patience until) {
  const auto life = self->any_session();
  const std::string node = node_of(path);
  const std::string by = spi::to_hex(change.id);
  const std::string data = text_of_count(change.count, change.life, by);
  for (int round = 0; round < change_limit; ++round) {
    const result<count> known = co_await read_count(self, path, until);
    if (!known) co_return tl::unexpected(known.error());
    if (known->value && known->set_by == by) co_return spi::latch_state{known->value};
    if (known->value && *known->value > 0) {
      co_return failure(errc::conflict,
                        "the latch is set, its count is " + std::to_string(*known->value));
    }
    request write = make_create(node, data, node_kind::persistent, self->options_->acl);
    if (known->version) {
      const result<void> clear = co_await clear_latch(self, path, until);
      if (!clear) co_return tl::unexpected(clear.error());
      write = make_set_data(node, data, *known->version);
    }
    question step{std::move(write), nullptr, {}};
    const result<reply> answer = co_await ask_one(life, std::move(step), until);
    if (!answer) co_return tl::unexpected(answer.error());
    if (answer->code == code::ok) co_return spi::latch_state{change.count};
    if (answer->code == code::no_node && !known->version) {
      const result<void> above = co_await make_containers(life, path, self->options_->acl, until);
      if (!above) co_return tl::unexpected(above.error());
    } else if (answer->code != code::node_exists && answer->code != code::bad_version &&
               answer->code != code::no_node) {
      co_return tl::unexpected(refusal("write", node, answer->code));
    }
  }
  co_return failure(errc::unavailable, "zookeeper: too many concurrent latch updates");
}

task<result<spi::latch_state>> zookeeper_store::count_down(self_ptr self, std::string path,
                                                           spi::latch_change change,
                                                           net::patience until) {
  const auto life = self->any_session();
  const std::string node = node_of(path);
  const std::string mark = node + "/" + spi::to_hex(change.id);
  for (int round = 0; round < change_limit; ++round) {
    const result<count> known = co_await read_count(self, path, until);
    if (!known) co_return tl::unexpected(known.error());
    if (!known->value) co_return failure(errc::not_held, "the latch is unset");
    const std::uint32_t left = *known->value - std::min(*known->value, change.count);
    const std::string data = text_of_count(left, known->life, known->set_by);
    std::vector<request> parts;
    parts.push_back(make_set_data(node, data, *known->version));
    parts.push_back(make_create(mark, {}, node_kind::persistent, self->options_->acl));
    question step{make_multi(parts), nullptr, {}};
    const result<reply> answer = co_await ask_one(life, std::move(step), until);
    if (!answer) co_return tl::unexpected(answer.error());
    const auto outcome = read_multi(answer->body);
    const code failed = answer->code != code::ok ? answer->code
                        : outcome                ? outcome->failed
                                                 : code::connection_loss;
    if (failed == code::ok) co_return spi::latch_state{left};
    if (failed == code::node_exists) co_return spi::latch_state{known->value};  // counted before
    if (failed != code::bad_version && failed != code::no_node) {
      co_return tl::unexpected(refusal("write", node, failed));
    }
  }
  co_return failure(errc::unavailable, "zookeeper: too many concurrent latch updates");
}

// A latch and locks of one name do not meet.
task<result<void>> zookeeper_store::check_latch(self_ptr self, std::string path,
                                                net::patience until) {
  const auto life = self->any_session();
  std::vector<question> batch;
  for (const std::string_view folder : {std::string_view{}, locks_folder, leases_folder}) {
    std::string at = folder.empty() ? path : path + "/" + std::string(folder);
    batch.push_back({make_get_children(at, false), nullptr, {}});
  }
  const replies answers = co_await asking(life, std::move(batch), until);
  for (const result<reply>& each : answers) {
    if (!each) co_return tl::unexpected(each.error());
    if (each->code == code::no_node) continue;
    const auto names = read_children(each->body);
    if (each->code != code::ok || !names) {
      co_return tl::unexpected(refusal("list", path, each->code));
    }
    if (!line(*names).nodes().empty()) {
      co_return failure(errc::name_conflict, "the name is in use as a lock or semaphore");
    }
  }
  co_return result<void>{};
}

flow zookeeper_store::do_change_latch(self_ptr self, std::string path, spi::latch_change change,
                                      net::patience until, spi::completion<spi::latch_state> done) {
  const result<void> fits = co_await check_latch(self, path, until);
  if (!fits) {
    done(tl::unexpected(fits.error()));
    co_return;
  }
  if (change.what == spi::latch_change::kind::set) {
    done(co_await set_count(self, path, change, until));
  } else {
    done(co_await count_down(self, path, change, until));
  }
}

flow zookeeper_store::do_read_latch(self_ptr self, std::string path, net::patience until,
                                    spi::completion<spi::latch_state> done) {
  const result<void> fits = co_await check_latch(self, path, until);
  if (!fits) {
    done(tl::unexpected(fits.error()));
    co_return;
  }
  const result<count> known = co_await read_count(self, path, until);
  if (known) {
    done(spi::latch_state{known->value});
  } else {
    done(tl::unexpected(known.error()));
  }
}

void zookeeper_store::change_latch(const spi::resource_id& resource,
                                   const spi::latch_change& change, const spi::op_context& context,
                                   spi::completion<spi::latch_state> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  do_change_latch(shared_from_this(), path_of(*options_, resource), change, context,
                  std::move(done));
}

void zookeeper_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                                 spi::completion<spi::latch_state> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  do_read_latch(shared_from_this(), path_of(*options_, resource), context, std::move(done));
}

// Sent before the caller's next request on the same session, and executed before it: registered.
result<std::unique_ptr<spi::subscription>> zookeeper_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (closed_) return failure(errc::cancelled, "closed");
  auto watching = std::make_shared<latch_watching>(
      any_session(), node_of(path_of(*options_, resource)), std::move(on_change));
  watching->arm();
  return std::make_unique<latch_subscription>(std::move(watching));
}

}  // namespace holdfast::zookeeper
