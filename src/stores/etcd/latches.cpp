// The latch: a key with the count, changed by transactions that compare its revision, and one key
// for every count-down made, so that each counts once. All are attached to a lease with the latch's
// own life, which every change keeps alive: the cluster itself forgets a latch that nobody touches.
#include "stores/callback_guard.hpp"
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::etcd {

namespace {

constexpr std::string_view latch_version = "holdfast/1 ";

std::string count_text(std::uint32_t count, const std::string& set_by) {
  return std::string(latch_version) + std::to_string(count) + " " + set_by;
}

duration whole_seconds(duration life) {
  constexpr duration second = std::chrono::seconds(1);
  return (life + second - duration{1}) / second * second;
}

class latch_watching final : public spi::subscription {
 public:
  latch_watching(std::shared_ptr<watch_hub> hub, const std::string& key, spi::latch_watch on_change)
      : hub_(std::move(hub)), state_(std::make_shared<state>()) {
    state_->on_change = std::move(on_change);
    // Its creation is reported too: the look that follows sees what happened before.
    id_ = hub_->add({key}, watch_filter::none, [state = state_](const watch_news& /*news*/) {
      state->callbacks.run([&] { state->on_change(); });
    });
  }
  latch_watching(const latch_watching&) = delete;
  latch_watching& operator=(const latch_watching&) = delete;
  ~latch_watching() override {
    hub_->remove(id_);
    state_->callbacks.end();
  }

 private:
  struct state {
    stores::callback_guard callbacks;
    spi::latch_watch on_change;  // only by the callbacks
  };
  const std::shared_ptr<watch_hub> hub_;
  const std::shared_ptr<state> state_;
  watch_hub::watch_id id_ = 0;
};

}  // namespace

// Looks at the other keys of the name too: one name cannot be both a latch and a lock.
task<result<etcd_store::latch_count>> etcd_store::read_count(self_ptr self, std::string prefix,
                                                             std::string mark,
                                                             net::patience until) {
  range_options some;
  some.limit = 1;
  const std::string key = prefix + std::string(latch_count_key);
  const std::string folder = prefix + std::string(latch_folder);
  txn_writer looks;
  looks.then_range(range_body({key}))
      .then_range(range_body({prefix + std::string(latch_marks) + mark}, some))
      .then_range(range_body({prefix, folder}, some))
      .then_range(range_body({keys_with(folder).end, keys_with(prefix).end}, some));
  const txn_answer seen = co_await value_of(ask_txn(self->way_, looks, "read", key, until));
  if (seen.parts.size() != 4) co_return failure(errc::unavailable, "etcd: an unexpected answer");
  latch_count known;
  known.marked = !seen.parts[1].range.kvs.empty();
  known.has_claims = !seen.parts[2].range.kvs.empty() || !seen.parts[3].range.kvs.empty();
  if (seen.parts[0].range.kvs.empty()) co_return known;
  const key_value& kv = seen.parts[0].range.kvs.front();
  std::string_view text = kv.value;
  std::uint32_t value = 0;
  const bool ours = text.starts_with(latch_version);
  if (ours) text.remove_prefix(latch_version.size());
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (!ours || problem != std::errc{}) {
    co_return failure(errc::name_conflict, "etcd: " + key + " is not a holdfast latch");
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  known.set_by = text.substr(std::min<std::size_t>(text.size(), 1));
  known.value = value;
  known.modified = kv.modified;
  known.lease = kv.lease;
  co_return known;
}

task<result<bool>> etcd_store::write_count(self_ptr self, std::string prefix, latch_count known,
                                           stores::queued_latch to, net::patience until) {
  const bool sets = to.mark.empty();
  std::int64_t lease = known.lease;
  if (sets) lease = co_await value_of(new_lease(self, whole_seconds(to.life), until));
  const std::string key = prefix + std::string(latch_count_key);
  const std::string marks = prefix + std::string(latch_marks);
  txn_writer step;
  step.modified({key}, txn_writer::relation::equal, known.modified);
  if (sets) {
    step.then_delete(delete_body(keys_with(marks)));
  } else {
    step.created({marks + to.mark}, txn_writer::relation::equal, 0)
        .then_put(put_body(marks + to.mark, {}, lease));
  }
  step.then_put(put_body(key, count_text(*to.value, to.set_by), lease));
  std::vector<call> calls;
  calls.push_back(std::move(step).made());
  if (!sets) calls.push_back(lease_call(method::lease_keep_alive, lease));
  const replies answers = co_await asking(self->way_, std::move(calls), until);
  const result<txn_answer> done = txn_in(answers.front(), "put", key);
  if (!done && done.error() == errc::lost) co_return false;  // its life has just ended
  if (!done) co_return tl::unexpected(done.error());
  if (sets && !done->succeeded) end_lease(self, lease);
  co_return done->succeeded;
}

result<std::unique_ptr<spi::subscription>> etcd_store::watch_latch(const spi::resource_id& resource,
                                                                   spi::latch_watch on_change) {
  if (closed_) return failure(errc::cancelled, "closed");
  const std::string key = prefix_of(*options_, resource) + std::string(latch_count_key);
  return std::make_unique<latch_watching>(watches_, key, std::move(on_change));
}

}  // namespace holdfast::etcd
