// What operators see and do: who holds and who waits, which names are in use, and the
// two ways to revoke a hold.
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

namespace {

constexpr std::int64_t page_size = 2'000;      // keys that `list` reads at once
constexpr std::size_t list_limit = 1'000'000;  // and in total

spi::holder shown(const standing& what) {
  spi::holder one;
  one.claim = what.claim;
  one.mode = what.mode;
  one.permits = what.permits.permits;
  one.fence = stores::fence_of(what.fenced);
  one.by_session = what.lease != 0;
  one.payload = stores::payload_in(what.value);
  return one;
}

}  // namespace

task<result<line>> etcd_store::look_at(self_ptr self, std::string prefix, look::of scope,
                                       std::string own, net::patience until) {
  call reads = read_call(ranges_of(scope, prefix, own));
  const reply answer = co_await value_of(ask_one(self->way_, reads, "read", prefix, until));
  txn_answer done = co_await value_of(read_txn(answer.body));
  co_return line(prefix, seen_in(done, 0, scope).kvs, done.header.revision);
}

task<result<spi::resource_state>> etcd_store::do_inspect(self_ptr self, std::string prefix,
                                                         net::patience until) {
  const std::string none;
  const line order = co_await value_of(look_at(self, prefix, look::of::all, none, until));
  spi::resource_state state;
  for (std::size_t i = 0; i < order.claims().size(); ++i) {
    const standing& each = order.claims()[i];
    if (!order.holds(i)) {
      spi::waiting one;
      one.claim = each.claim;
      one.mode = each.mode;
      one.permits = each.permits.permits;
      one.payload = stores::payload_in(each.value);
      state.waiters.push_back(std::move(one));
      continue;
    }
    spi::holder one = shown(each);
    if (is_detached(each.owner)) {
      one.by_session = false;
      call asks = lease_call(method::lease_time_to_live, each.lease);
      const result<reply> answer = co_await ask_one(self->way_, asks, "read", each.key, until);
      const auto lease = answer ? read_lease(answer->body) : result<lease_answer>(lease_answer{});
      if (lease && lease->seconds > 0) one.remaining = std::chrono::seconds(lease->seconds);
    }
    state.holders.push_back(std::move(one));
  }
  co_return state;
}

// Only keys that are attached to a lease count as claims: others' data may be beside them.
task<result<std::vector<spi::resource_summary>>> etcd_store::do_list(self_ptr self,
                                                                     std::string space,
                                                                     std::string prefix,
                                                                     net::patience until) {
  const std::string root = space_prefix(*self->options_, space);
  key_range todo = keys_with(root);
  range_options how;
  how.limit = page_size;
  std::map<std::string, std::vector<key_value>> names;
  for (std::size_t read = 0; read < list_limit;) {
    call reads = range_call(todo, how);
    const reply answer = co_await value_of(ask_one(self->way_, reads, "list", root, until));
    range_answer page = co_await value_of(read_range(answer.body));
    how.revision = page.header.revision;  // all pages at one revision
    read += page.kvs.size();
    if (!page.kvs.empty()) todo.key = page.kvs.back().key + '\0';
    for (key_value& each : page.kvs) {
      if (each.lease == 0) continue;
      const auto key =
          name_in(std::string_view(each.key).substr(root.size()), self->options_->layout);
      if (key && key->name.starts_with(prefix)) names[key->name].push_back(std::move(each));
    }
    if (!page.more) break;
  }
  std::vector<spi::resource_summary> found;
  for (const auto& [name, kvs] : names) {
    const line order(root + encoded(name, self->options_->layout) + "/", kvs);
    std::size_t holders = 0;
    for (std::size_t i = 0; i < order.claims().size(); ++i) holders += order.holds(i) ? 1 : 0;
    if (order.claims().empty()) continue;
    found.push_back({name, holders, order.claims().size() - holders});
  }
  co_return found;
}

// Safe: its holder is asked, by a key beside its own. By force: the same, so that watchers can tell
// this end from a release, and then the claim is removed.
task<result<std::vector<spi::holder>>> etcd_store::do_revoke(self_ptr self, std::string prefix,
                                                             spi::revocation how, std::string claim,
                                                             net::patience until) {
  const std::string none;
  const line order = co_await value_of(look_at(self, prefix, look::of::all, none, until));
  std::vector<spi::holder> taken;
  for (std::size_t i = 0; i < order.claims().size(); ++i) {
    const standing& each = order.claims()[i];
    if (!order.holds(i) || (!claim.empty() && claim != each.claim)) continue;
    if (how == spi::revocation::safe && !parse_id(each.id)) {
      co_return failure(
          errc::unsupported,
          "held by another kind of client, which cannot be asked; by force it can be taken");
    }
    const key_range own{each.key};
    txn_writer mark;
    mark.created(own, txn_writer::relation::equal, each.created)
        .then_put(put_body(revoked_key(prefix, each.kind, each.id), {}, each.lease));
    result<txn_answer> done = co_await ask_txn(self->way_, mark, "revoke", each.key, until);
    if (done && how == spi::revocation::force) {
      txn_writer end;
      end.created(own, txn_writer::relation::equal, each.created)
          .then_delete(delete_body(keys_with(each.key)));
      if (each.kind == claim_kind::reader) {
        end.then_delete(delete_body({mode_key(prefix, each.kind, each.id)}));
      }
      done = co_await ask_txn(self->way_, end, "revoke", each.key, until);
    }
    // It has just ended by itself, or its lease has.
    if (done ? !done->succeeded : done.error() == errc::lost) continue;
    if (!done) co_return tl::unexpected(done.error());
    taken.push_back(shown(each));
  }
  co_return taken;
}

}  // namespace holdfast::etcd
