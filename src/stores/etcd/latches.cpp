// The latch: a key with the count, changed by transactions on its revision, and one key for every
// count-down that was made, so that each counts once. All hang on a lease of the latch's own life, which
// every change keeps alive: a latch that nobody touches is forgotten by the cluster itself.
#include "stores/callback_guard.hpp"
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::etcd {

namespace {

constexpr int change_limit = 200;  // others were faster each time
constexpr std::string_view latch_version = "holdfast/1 ";

std::string count_text(std::uint32_t count, const std::string& set_by) {
  return std::string(latch_version) + std::to_string(count) + " " + set_by;
}

std::int64_t whole_seconds(duration life) {
  constexpr duration second = std::chrono::seconds(1);
  return (life + second - duration{1}) / second;
}

class latch_watching final : public spi::subscription {
 public:
  latch_watching(std::shared_ptr<watch_hub> hub, const std::string& key, spi::latch_watch on_change)
      : hub_(std::move(hub)), state_(std::make_shared<state>()) {
    state_->on_change = std::move(on_change);
    // When it is there it is told too: what happened before is seen by the look that follows.
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

// A latch and locks of one name do not meet: what is around it is looked at, too.
task<result<etcd_store::count>> etcd_store::read_count(self_ptr self, std::string prefix,
                                                       std::string_view mark, net::patience until) {
  range_options some;
  some.limit = 1;
  const std::string key = prefix + std::string(latch_count);
  const std::string folder = prefix + std::string(latch_folder);
  txn_writer looks;
  looks.then_range(range_body({key}))
      .then_range(range_body({mark.empty() ? key : std::string(mark)}, some))
      .then_range(range_body({prefix, folder}, some))
      .then_range(range_body({keys_with(folder).end, keys_with(prefix).end}, some));
  call reads = std::move(looks).made();
  const result<reply> answer = co_await ask_one(self->way_, reads, "read", key, until);
  if (!answer) co_return tl::unexpected(answer.error());
  const auto seen = read_txn(answer->body);
  if (!seen) co_return tl::unexpected(seen.error());
  if (seen->parts.size() != 4) co_return failure(errc::unavailable, "etcd: an unexpected answer");
  if (!seen->parts[2].range.kvs.empty() || !seen->parts[3].range.kvs.empty()) {
    co_return failure(errc::name_conflict, "the name is in use as a lock or semaphore");
  }
  count known;
  known.marked = !mark.empty() && !seen->parts[1].range.kvs.empty();
  if (seen->parts[0].range.kvs.empty()) co_return known;
  const key_value& kv = seen->parts[0].range.kvs.front();
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

task<result<spi::latch_state>> etcd_store::set_count(self_ptr self, std::string prefix,
                                                     spi::latch_change change,
                                                     net::patience until) {
  const std::string key = prefix + std::string(latch_count);
  const std::string by = spi::to_hex(change.id);
  std::int64_t lease = 0;
  for (int round = 0; round < change_limit; ++round) {
    const result<count> known = co_await read_count(self, prefix, {}, until);
    if (!known) co_return tl::unexpected(known.error());
    if (known->value && known->set_by == by) co_return spi::latch_state{known->value};
    if (known->value && *known->value > 0) {
      co_return failure(errc::conflict,
                        "the latch is set, its count is " + std::to_string(*known->value));
    }
    if (lease == 0) {
      call grants = lease_grant_call(whole_seconds(change.life));
      const result<reply> granted = co_await ask_one(self->way_, grants, "grant", "a lease", until);
      if (!granted) co_return tl::unexpected(granted.error());
      const auto made = read_lease(granted->body);
      if (!made || made->id == 0) co_return failure(errc::unavailable, "etcd: no lease");
      lease = made->id;
    }
    txn_writer step;
    step.modified({key}, txn_writer::relation::equal, known->modified)
        .then_delete(delete_body(keys_with(prefix + std::string(latch_marks))))
        .then_put(put_body(key, count_text(change.count, by), lease));
    call puts = std::move(step).made();
    const result<reply> answer = co_await ask_one(self->way_, puts, "put", key, until);
    if (!answer) co_return tl::unexpected(answer.error());
    const auto done = read_txn(answer->body);
    if (!done) co_return tl::unexpected(done.error());
    if (done->succeeded) co_return spi::latch_state{change.count};
  }
  co_return failure(errc::unavailable, "etcd: too many concurrent latch updates");
}

task<result<spi::latch_state>> etcd_store::count_down(self_ptr self, std::string prefix,
                                                      spi::latch_change change,
                                                      net::patience until) {
  const std::string key = prefix + std::string(latch_count);
  const std::string mark = prefix + std::string(latch_marks) + spi::to_hex(change.id);
  for (int round = 0; round < change_limit; ++round) {
    const result<count> known = co_await read_count(self, prefix, mark, until);
    if (!known) co_return tl::unexpected(known.error());
    if (!known->value) co_return failure(errc::not_held, "the latch is unset");
    if (known->marked) co_return spi::latch_state{known->value};  // counted before
    const std::uint32_t left = *known->value - std::min(*known->value, change.count);
    txn_writer step;
    step.modified({key}, txn_writer::relation::equal, known->modified)
        .created({mark}, txn_writer::relation::equal, 0)
        .then_put(put_body(key, count_text(left, known->set_by), known->lease))
        .then_put(put_body(mark, {}, known->lease));
    std::vector<call> calls;
    calls.push_back(std::move(step).made());
    calls.push_back(lease_call(method::lease_keep_alive, known->lease));
    const replies answers = co_await asking(self->way_, std::move(calls), until);
    if (!answers[0]) co_return tl::unexpected(answers[0].error());
    if (lease_is_gone(answers[0]->status)) continue;  // its life has just ended
    if (!answers[0]->ok()) co_return tl::unexpected(refusal("put", key, answers[0]->status));
    const auto done = read_txn(answers[0]->body);
    if (!done) co_return tl::unexpected(done.error());
    if (done->succeeded) co_return spi::latch_state{left};
  }
  co_return failure(errc::unavailable, "etcd: too many concurrent latch updates");
}

flow etcd_store::do_change_latch(self_ptr self, std::string prefix, spi::latch_change change,
                                 net::patience until, spi::completion<spi::latch_state> done) {
  if (change.what == spi::latch_change::kind::set) {
    done(co_await set_count(self, prefix, change, until));
  } else {
    done(co_await count_down(self, prefix, change, until));
  }
}

flow etcd_store::do_read_latch(self_ptr self, std::string prefix, net::patience until,
                               spi::completion<spi::latch_state> done) {
  const result<count> known = co_await read_count(self, prefix, {}, until);
  if (known) {
    done(spi::latch_state{known->value});
  } else {
    done(tl::unexpected(known.error()));
  }
}

void etcd_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                              const spi::op_context& context,
                              spi::completion<spi::latch_state> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  do_change_latch(shared_from_this(), prefix_of(*options_, resource), change, context,
                  std::move(done));
}

void etcd_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                            spi::completion<spi::latch_state> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  do_read_latch(shared_from_this(), prefix_of(*options_, resource), context, std::move(done));
}

result<std::unique_ptr<spi::subscription>> etcd_store::watch_latch(const spi::resource_id& resource,
                                                                   spi::latch_watch on_change) {
  if (closed_) return failure(errc::cancelled, "closed");
  const std::string key = prefix_of(*options_, resource) + std::string(latch_count);
  return std::make_unique<latch_watching>(watches_, key, std::move(on_change));
}

}  // namespace holdfast::etcd
