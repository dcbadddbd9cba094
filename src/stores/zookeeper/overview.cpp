// What operators see and do: who holds and who waits, which names are in use, and the
// two ways to revoke a hold.
#include "stores/payload.hpp"
#include "stores/zookeeper/zookeeper_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::zookeeper {

namespace {

constexpr std::size_t list_limit = 100'000;  // names that `list` looks at
constexpr std::size_t list_batch = 200;

spi::mode mode_of(claim_kind kind) {
  if (kind == claim_kind::lease) return spi::mode::permit;
  return kind == claim_kind::reader ? spi::mode::shared : spi::mode::exclusive;
}

// A holder or waiter whose data is not known yet.
struct person {
  claim_node node;
  std::vector<std::string> paths;
  bool holds = false;
  bool permit = false;
};

// `lists`: of folders_of(path).
std::vector<person> people_of(const std::string& path,
                              const std::vector<std::vector<std::string>>& lists) {
  std::vector<person> people;
  const line order(lists[0]);
  for (std::size_t i = 0; i < order.nodes().size(); ++i) {
    const claim_node& node = order.nodes()[i];
    people.push_back({node, {path + "/" + node.name}, order.holds(i), false});
  }
  const std::size_t first_lease = people.size();
  const line having(lists[2]);
  for (const claim_node& node : having.nodes()) {
    std::string whole = path + "/" + std::string(leases_folder) + "/" + node.name;
    const auto same =
        std::find_if(people.begin() + static_cast<std::ptrdiff_t>(first_lease), people.end(),
                     [&](const person& each) { return node.id && each.node.id == node.id; });
    if (same != people.end()) {
      same->paths.push_back(std::move(whole));
    } else {
      people.push_back({node, {std::move(whole)}, true, true});
    }
  }
  const line waiting(lists[1]);
  for (const claim_node& node : waiting.nodes()) {
    std::string whole = path + "/" + std::string(locks_folder) + "/" + node.name;
    people.push_back({node, {std::move(whole)}, false, true});
  }
  return people;
}

}  // namespace

task<result<zookeeper_store::overview>> zookeeper_store::look(self_ptr self, std::string path,
                                                              net::patience until) {
  const auto life = self->any_session();
  const auto lists = co_await value_of(look_around(life, path, freshness::of_now, until));
  const std::vector<person> people = people_of(path, lists);
  std::vector<question> reads;
  for (const person& each : people) {
    if (reads.size() == data_limit) break;
    reads.push_back({make_get_data(each.paths.front(), false)});
  }
  const replies answers = co_await asking(life, std::move(reads), until);
  overview seen;
  for (std::size_t i = 0; i < people.size(); ++i) {
    const person& each = people[i];
    node_data known;
    if (i < answers.size()) {
      if (!answers[i]) co_return tl::unexpected(answers[i].error());
      if (answers[i]->code == code::no_node) continue;  // gone by now
      const auto read = read_data(answers[i]->body);
      if (answers[i]->code == code::ok && read) known = *read;
    }
    const auto terms = stores::permits_in(known.data);
    const spi::mode mode = each.permit ? spi::mode::permit : mode_of(each.node.kind);
    if (!each.holds) {
      spi::waiting one;
      one.claim = id_text(each.node);
      one.mode = mode;
      one.permits = terms ? terms->permits : 1;
      one.payload = stores::payload_in(known.data);
      seen.state.waiters.push_back(std::move(one));
      continue;
    }
    spi::holder one;
    one.claim = id_text(each.node);
    one.mode = mode;
    one.permits = static_cast<std::uint32_t>(each.paths.size());
    if (known.stat.created != 0) one.fence = stores::fence_of(known.stat.created);
    one.by_session = known.stat.owner != 0;
    one.payload = stores::payload_in(known.data);
    seen.state.holders.push_back(std::move(one));
    seen.paths.push_back(each.paths);
  }
  co_return seen;
}

task<result<spi::resource_state>> zookeeper_store::do_inspect(self_ptr self, std::string path,
                                                              net::patience until) {
  overview seen = co_await value_of(look(self, std::move(path), until));
  co_return std::move(seen.state);
}

// A folder of names; where '/' nests, with subfolders.
task<result<std::vector<spi::resource_summary>>> zookeeper_store::do_list(self_ptr self,
                                                                          std::string space,
                                                                          std::string prefix,
                                                                          net::patience until) {
  const auto life = self->any_session();
  const bool nests = self->options_->layout == name_layout::path;
  struct place {
    std::string path;
    std::string name;
  };
  std::vector<place> todo{{folder_of(*self->options_, space), {}}};
  std::vector<spi::resource_summary> found;
  for (std::size_t from = 0; from < todo.size() && from < list_limit;) {
    const std::size_t to = std::min(from + list_batch, todo.size());
    std::vector<question> batch;
    for (std::size_t i = from; i < to; ++i) {
      for (const std::string& each : folders_of(todo[i].path)) {
        batch.push_back({make_get_children(each.empty() ? "/" : each, false)});
      }
    }
    const replies lists = co_await asking(life, std::move(batch), until);
    for (std::size_t i = from; i < to; ++i) {
      const place at = todo[i];
      const std::size_t first = (i - from) * 3;
      const children around = co_await value_of(children_in(lists[first], at.path));
      if (!at.name.empty() && at.name.starts_with(prefix)) {
        const auto locks = children_in(lists[first + 1], at.path);
        const auto leases = children_in(lists[first + 2], at.path);
        const auto people =
            people_of(at.path, {around, locks.value_or(children{}), leases.value_or(children{})});
        const auto holders = static_cast<std::size_t>(std::count_if(
            people.begin(), people.end(), [](const person& each) { return each.holds; }));
        if (!people.empty()) found.push_back({at.name, holders, people.size() - holders});
      }
      if (!at.name.empty() && !nests) continue;
      for (const std::string& each : around) {
        const auto name = each == "%" ? std::optional<std::string>("") : decoded(each);
        if (!name || parse_node(each) || (name->empty() && !nests)) continue;
        if (each == locks_folder || each == leases_folder || each == "zookeeper") continue;
        if (each.starts_with("_holdfast")) continue;
        todo.push_back({at.path + "/" + each, at.name.empty() ? *name : at.name + "/" + *name});
      }
    }
    from = to;
  }
  std::sort(found.begin(), found.end(),
            [](const auto& left, const auto& right) { return left.name < right.name; });
  co_return found;
}

// By force: the node's data is changed and the node removed in one step, so that watchers can tell
// this end from a release. Safe: its holder is asked, as Curator's Revoker does.
task<result<std::vector<spi::holder>>> zookeeper_store::do_revoke(self_ptr self, std::string path,
                                                                  spi::revocation how,
                                                                  std::string claim,
                                                                  net::patience until) {
  const auto life = self->any_session();
  const overview seen = co_await value_of(look(self, std::move(path), until));
  std::vector<spi::holder> taken;
  for (std::size_t i = 0; i < seen.state.holders.size(); ++i) {
    const spi::holder& holder = seen.state.holders[i];
    if (!claim.empty() && claim != holder.claim) continue;
    std::vector<request> parts;
    for (const std::string& each : seen.paths[i]) {
      parts.push_back(make_set_data(each, revoke_message));
      if (how == spi::revocation::force) parts.push_back(make_remove(each));
    }
    const multi_outcome done = co_await value_of(ask_multi(life, std::move(parts), until));
    if (done.failed == code::no_node) continue;  // it has just ended by itself
    if (done.failed != code::ok) {
      co_return tl::unexpected(refusal("revoke", seen.paths[i].front(), done.failed));
    }
    taken.push_back(holder);
  }
  co_return taken;
}

}  // namespace holdfast::zookeeper
