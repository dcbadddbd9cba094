// The latch: a node with the count, changed by compare-and-set, and below it a mark for every
// count-down, so that each counts once. Its age is judged by the server's clock.
#include "stores/callback_guard.hpp"
#include "stores/zookeeper/zookeeper_store.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::zookeeper {

namespace {

constexpr std::size_t clear_batch = 500;  // marks removed together
constexpr duration stamp_life = std::chrono::seconds(10);
constexpr std::string_view version = "holdfast/1";
constexpr std::string_view clock_node = "clock";  // besides the marks, which are in hexadecimal

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

// Watches the count for as long as somebody is interested. Thread-safe.
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
    arm();  // before reporting: nothing is missed
    callbacks_.run([this] { on_change_(); });
  }

  const std::shared_ptr<session> life_;
  const std::string node_;
  spi::latch_watch on_change_;  // only by callbacks_
  stores::callback_guard callbacks_;
};

}  // namespace

// After a barrier, together with the name's other nodes: one name cannot be
// both a latch and a lock.
task<result<zookeeper_store::latch_count>> zookeeper_store::read_count(self_ptr self,
                                                                       std::string path,
                                                                       std::string mark,
                                                                       net::patience until) {
  const std::string node = node_of(path);
  std::vector<question> batch;
  batch.push_back({make_barrier()});
  batch.push_back({make_get_data(node, false)});
  for (const std::string& each : folders_of(path)) {
    batch.push_back({make_get_children(each, false)});
  }
  if (!mark.empty()) batch.push_back({make_exists(node + "/" + mark, false)});
  const auto life = self->any_session();
  const replies answers = co_await asking(life, std::move(batch), until);
  for (const result<reply>& each : answers) {
    if (!each) co_return tl::unexpected(each.error());
  }
  latch_count known;
  for (std::size_t i = 2; i < 5; ++i) {
    const children around = co_await value_of(children_in(answers[i], path));
    known.has_claims = known.has_claims || !line(around).nodes().empty();
  }
  known.marked = !mark.empty() && answers.back()->code == code::ok;
  if (answers[1]->code == code::no_node) co_return known;
  if (answers[1]->code != code::ok) {
    co_return tl::unexpected(refusal("read", node, answers[1]->code));
  }
  const node_data read = co_await value_of(read_data(answers[1]->body));
  const auto words = words_of(read.data);
  std::uint32_t value = 0;
  std::int64_t milliseconds = 0;
  if (words.size() != 4 || words[0] != version || !parse(words[1], value) ||
      !parse(words[2], milliseconds)) {
    co_return failure(errc::name_conflict, "zookeeper: " + node + " is not a holdfast latch");
  }
  const std::int64_t time = co_await value_of(server_clock(self, path, until));
  known.version = read.stat.version;
  known.life = std::chrono::milliseconds(milliseconds);
  known.set_by = words[3];
  if (time - read.stat.changed_at <= milliseconds) known.value = value;
  co_return known;
}

// Milliseconds of the leader's clock: its time stamp on a node that is created and removed for
// this. Between two of these we use our own clock.
task<result<std::int64_t>> zookeeper_store::server_clock(self_ptr self, std::string path,
                                                         net::patience until) {
  const auto life = self->any_session();
  const std::string node = node_of(path) + "/" + std::string(clock_node);
  const time_point before = self->now();
  {
    const lock_guard lock(self->mutex_);
    const duration since = before - self->stamp_at_;
    if (self->stamp_ != 0 && since < stamp_life) {
      co_return self->stamp_ + since / std::chrono::milliseconds(1);
    }
  }
  question make{make_create(node, {}, node_kind::ephemeral_sequential, self->options_->acl)};
  const reply made = co_await value_of(ask_one(life, std::move(make), until));
  if (made.code != code::ok) co_return tl::unexpected(refusal("create", node, made.code));
  const created_node stamp = co_await value_of(read_created(made.body));
  question remove{make_remove(stamp.path)};
  co_await value_of(ask_one(life, std::move(remove), until));
  const lock_guard lock(self->mutex_);
  self->stamp_ = stamp.stat.changed_at;
  self->stamp_at_ = before;
  co_return stamp.stat.changed_at;
}

// Removes the marks of a round that is over, as long as the count is still that round's: those of
// the next one show what has been counted. False: others were faster.
task<result<bool>> zookeeper_store::clear_latch(self_ptr self, std::string path, std::int32_t known,
                                                net::patience until) {
  const auto life = self->any_session();
  const std::string node = node_of(path);
  children marks = co_await value_of(list_children(life, node, freshness::any, until));
  std::erase_if(marks, [](const std::string& each) { return each.starts_with(clock_node); });
  for (std::size_t from = 0; from < marks.size(); from += clear_batch) {
    std::vector<request> parts{make_check(node, known)};
    for (std::size_t i = from; i < std::min(from + clear_batch, marks.size()); ++i) {
      parts.push_back(make_remove(node + "/" + marks[i]));
    }
    const multi_outcome done = co_await value_of(ask_multi(life, std::move(parts), until));
    if (done.failed == code::bad_version || done.failed == code::no_node) co_return false;
    if (done.failed != code::ok) co_return tl::unexpected(refusal("clear", node, done.failed));
  }
  co_return true;
}

// False: others were faster.
task<result<bool>> zookeeper_store::write_count(self_ptr self, std::string path, latch_count known,
                                                stores::queued_latch to, net::patience until) {
  const auto life = self->any_session();
  const openness acl = self->options_->acl;
  const std::string node = node_of(path);
  const std::string data = text_of_count(*to.value, to.life, to.set_by);
  if (to.mark.empty() && known.version) {
    const bool cleared = co_await value_of(clear_latch(self, path, *known.version, until));
    if (!cleared) co_return false;
  }
  std::vector<request> parts;
  if (known.version) {
    parts.push_back(make_set_data(node, data, *known.version));
  } else {
    parts.push_back(make_create(node, data, node_kind::persistent, acl));
  }
  if (!to.mark.empty()) {
    parts.push_back(make_create(node + "/" + to.mark, {}, node_kind::persistent, acl));
  }
  const multi_outcome done = co_await value_of(ask_multi(life, std::move(parts), until));
  if (done.failed == code::ok) co_return true;
  if (done.failed == code::no_node && !known.version) {
    co_await value_of(make_containers(life, path, acl, until));
  } else if (done.failed != code::node_exists && done.failed != code::bad_version &&
             done.failed != code::no_node) {
    co_return tl::unexpected(refusal("write", node, done.failed));
  }
  co_return false;
}

// Sent before the caller's next request on the same session, so executed before it: registered.
result<std::unique_ptr<spi::subscription>> zookeeper_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (closed_) return failure(errc::cancelled, "closed");
  auto watching = std::make_shared<latch_watching>(
      any_session(), node_of(path_of(*options_, resource)), std::move(on_change));
  watching->arm();
  return std::make_unique<stores::observing<latch_watching>>(std::move(watching));
}

}  // namespace holdfast::zookeeper
