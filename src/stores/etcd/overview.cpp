// What people see and do: who holds and who waits, which names are in use, and the two ways to take a
// hold away.
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

namespace {

constexpr std::int64_t page_size = 2'000;      // keys that `list` reads at once
constexpr std::size_t list_limit = 1'000'000;  // and altogether

}  // namespace

task<result<line>> etcd_store::look_at(self_ptr self, std::string prefix, look::of scope,
                                       std::string own, net::patience until) {
  const spi::mode mode = scope == look::of::all ? spi::mode::exclusive : spi::mode::shared;
  call reads = read_call(keys_around(prefix, mode, own));
  const result<reply> answer = co_await ask_one(self->way_, reads, "read", prefix, until);
  if (!answer) co_return tl::unexpected(answer.error());
  auto done = read_txn(answer->body);
  if (!done) co_return tl::unexpected(done.error());
  co_return line(prefix, seen_in(*done, 0, scope).kvs, done->header.revision);
}

flow etcd_store::do_inspect(self_ptr self, std::string prefix, net::patience until,
                            spi::completion<spi::resource_state> done) {
  const result<line> order = co_await look_at(self, std::move(prefix), look::of::all, {}, until);
  if (!order) {
    done(tl::unexpected(order.error()));
    co_return;
  }
  spi::resource_state state;
  for (std::size_t i = 0; i < order->claims().size(); ++i) {
    const standing& each = order->claims()[i];
    if (!order->holds(i)) {
      spi::waiting one;
      one.claim = each.claim;
      one.mode = each.mode;
      one.permits = each.permits.permits;
      one.payload = stores::payload_in(each.value);
      state.waiters.push_back(std::move(one));
      continue;
    }
    spi::holder one;
    one.claim = each.claim;
    one.mode = each.mode;
    one.permits = each.permits.permits;
    one.fence = stores::fence_of(each.fenced);
    const bool detached = is_detached(each.owner);
    one.by_session = each.lease != 0 && !detached;
    one.payload = stores::payload_in(each.value);
    if (detached) {
      call asks = lease_call(method::lease_time_to_live, each.lease);
      const result<reply> answer = co_await ask_one(self->way_, asks, "read", each.key, until);
      const auto lease = answer ? read_lease(answer->body) : result<lease_answer>(lease_answer{});
      if (lease && lease->seconds > 0) one.remaining = std::chrono::seconds(lease->seconds);
    }
    state.holders.push_back(std::move(one));
  }
  done(std::move(state));
}

void etcd_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                         spi::completion<spi::resource_state> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  do_inspect(shared_from_this(), prefix_of(*options_, resource), context, std::move(done));
}

// Only keys that hang on a lease are taken for claims: others' data may be beside them.
flow etcd_store::do_list(self_ptr self, std::string space, std::string prefix, net::patience until,
                         spi::completion<std::vector<spi::resource_summary>> done) {
  const std::string root = space_prefix(*self->options_, space);
  key_range todo = keys_with(root);
  range_options how;
  how.limit = page_size;
  std::map<std::string, std::vector<key_value>> names;
  for (std::size_t read = 0; read < list_limit;) {
    call reads = range_call(todo, how);
    const result<reply> answer = co_await ask_one(self->way_, reads, "list", root, until);
    auto page =
        answer ? read_range(answer->body) : result<range_answer>(tl::unexpected(answer.error()));
    if (!page) {
      done(tl::unexpected(page.error()));
      co_return;
    }
    how.revision = page->header.revision;  // all pages of one moment
    read += page->kvs.size();
    if (!page->kvs.empty()) todo.key = page->kvs.back().key + '\0';
    const bool more = page->more;
    for (key_value& each : page->kvs) {
      if (each.lease == 0) continue;
      const auto key =
          name_in(std::string_view(each.key).substr(root.size()), self->options_->layout);
      if (key && key->name.starts_with(prefix)) names[key->name].push_back(std::move(each));
    }
    if (!more) break;
  }
  std::vector<spi::resource_summary> found;
  for (const auto& [name, kvs] : names) {
    const line order(root + encoded(name, self->options_->layout) + "/", kvs);
    std::size_t holders = 0;
    for (std::size_t i = 0; i < order.claims().size(); ++i) holders += order.holds(i) ? 1 : 0;
    if (order.claims().empty()) continue;
    found.push_back({name, holders, order.claims().size() - holders});
  }
  done(std::move(found));
}

void etcd_store::list(const std::string& space, const std::string& prefix,
                      const spi::op_context& context,
                      spi::completion<std::vector<spi::resource_summary>> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  do_list(shared_from_this(), space, prefix, context, std::move(done));
}

// Safe: its holder is asked, by a key beside its own. By force: the same, so that who watches can tell
// this end from a release, and then the claim is removed.
flow etcd_store::do_revoke(self_ptr self, std::string prefix, spi::revocation how,
                           std::string claim, net::patience until,
                           spi::completion<std::vector<spi::holder>> done) {
  const result<line> order = co_await look_at(self, prefix, look::of::all, {}, until);
  if (!order) {
    done(tl::unexpected(order.error()));
    co_return;
  }
  std::vector<spi::holder> taken;
  for (std::size_t i = 0; i < order->claims().size(); ++i) {
    const standing& each = order->claims()[i];
    if (!order->holds(i) || (!claim.empty() && claim != each.claim)) continue;
    if (how == spi::revocation::safe && !parse_id(each.id)) {
      done(failure(
          errc::unsupported,
          "held by another kind of client, which cannot be asked; by force it can be taken"));
      co_return;
    }
    const key_range own{each.key};
    txn_writer mark;
    mark.created(own, txn_writer::relation::equal, each.created)
        .then_put(put_body(revoked_key(prefix, each.kind, each.id), {}, each.lease));
    txn_writer end;
    end.created(own, txn_writer::relation::equal, each.created)
        .then_delete(delete_body(keys_with(each.key)));
    if (each.kind == claim_kind::reader) {
      end.then_delete(delete_body({mode_key(prefix, each.kind, each.id)}));
    }
    call asks = std::move(mark).made();
    call removes = std::move(end).made();
    result<reply> answer = co_await ask_one(self->way_, asks, "revoke", each.key, until);
    if (answer && how == spi::revocation::force) {
      answer = co_await ask_one(self->way_, removes, "revoke", each.key, until);
    }
    const auto step =
        answer ? read_txn(answer->body) : result<txn_answer>(tl::unexpected(answer.error()));
    if (!step) {
      done(tl::unexpected(step.error()));
      co_return;
    }
    if (!step->succeeded) continue;  // it has just ended by itself
    spi::holder one;
    one.claim = each.claim;
    one.mode = each.mode;
    one.permits = each.permits.permits;
    one.fence = stores::fence_of(each.fenced);
    one.by_session = each.lease != 0;
    one.payload = stores::payload_in(each.value);
    taken.push_back(std::move(one));
  }
  done(std::move(taken));
}

void etcd_store::revoke(const spi::resource_id& resource, spi::revocation how,
                        const std::string& claim, const spi::op_context& context,
                        spi::completion<std::vector<spi::holder>> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  do_revoke(shared_from_this(), prefix_of(*options_, resource), how, claim, context,
            std::move(done));
}

}  // namespace holdfast::etcd
