#include "stores/redis/topology/cluster_topology.hpp"

#include "stores/redis/client/reply.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace holdfast::redis {

namespace {

std::int64_t epoch_in(std::string_view info) noexcept {
  constexpr std::string_view name = "cluster_current_epoch:";
  const auto at = info.find(name);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = info.substr(at + name.size());
  return parse_number<std::int64_t>(rest.substr(0, rest.find('\r'))).value_or(0);
}

net::target target_of(std::string_view host, std::uint16_t port, const std::string& asked) {
  const bool named = !host.empty() && host != "?";
  return {named ? std::string(host) : asked, port, {}};
}

}  // namespace

std::uint16_t slot_of(std::string_view tag) noexcept {
  unsigned crc = 0;
  for (const char each : tag) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(each)) << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U;
    }
    crc &= 0xffffU;
  }
  return static_cast<std::uint16_t>(crc % slot_count);
}

std::uint16_t slot_of_key(std::string_view key) noexcept {
  const auto open = key.find('{');
  const auto end = open == key.npos ? key.npos : key.find('}', open);
  const bool tagged = end != key.npos && end > open + 1;
  return slot_of(tagged ? key.substr(open + 1, end - open - 1) : key);
}

std::uint16_t slot_of_partition(partition which, std::size_t partitions) {
  return partitions == slot_count ? which : slot_of_key(partition_prefix(which));
}

command cluster_question() {
  command both{"CLUSTER", "INFO"};
  both.then(command{"CLUSTER", "SLOTS"});
  return both;
}

std::optional<cluster_map> read_cluster(const reply& answer, const std::string& asked,
                                        std::size_t partitions) {
  if (answer.elements.size() != 2 || answer.elements[0].is_error() ||
      answer.elements[1].kind != reply::type::array) {
    return std::nullopt;
  }
  cluster_map made;
  made.masters.resize(partitions);
  made.epoch = epoch_in(answer.elements[0].words());
  bool any = false;
  for (const reply& range : answer.elements[1].elements) {
    // first slot, last slot, master (host, port, id, ...), replicas
    if (range.elements.size() < 3 || range.elements[2].elements.size() < 2) return std::nullopt;
    const reply& master = range.elements[2];
    const std::int64_t port = master.elements[1].integer;
    if (port <= 0 || port > 65'535) continue;
    const net::target where =
        target_of(master.elements[0].words(), static_cast<std::uint16_t>(port), asked);
    for (std::size_t i = 0; i < partitions; ++i) {
      const std::uint16_t slot = slot_of_partition(static_cast<partition>(i), partitions);
      if (slot < range.elements[0].integer || slot > range.elements[1].integer) continue;
      made.masters[i] = where;
      any = true;
    }
  }
  if (!any) return std::nullopt;
  return made;
}

std::optional<net::target> redirection(std::string_view text, const std::string& asked) {
  const auto space = text.rfind(' ');
  const auto colon = text.rfind(':');
  if (space == std::string_view::npos || colon == std::string_view::npos || colon < space) {
    return std::nullopt;
  }
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  if (!port || *port == 0) return std::nullopt;
  std::string_view host = text.substr(space + 1, colon - space - 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return target_of(host, *port, asked);
}

cluster_topology::cluster_topology(net::network net, settings how)
    : moving_topology(std::move(net), std::move(how.server), channel_id::flavour::sharded,
                      how.partitions),
      seeds_(std::move(how.seeds)) {}

cluster_topology::~cluster_topology() {
  if (!forked()) close();
}

moving_topology::verdict cluster_topology::judge(const routed_command& which,
                                                 const reply& refusal) {
  const trouble what = classify(refusal);
  if (what == trouble::moved || what == trouble::ask) {
    const auto to = redirection(refusal.text, which.from);
    if (!to) return {};
    if (what == trouble::ask) {
      if (which.runs != nullptr) return {verdict::what::later, nullptr};
      return {verdict::what::elsewhere, node_at(*to)};
    }
    settle(which.where, node_at(*to));
    {
      const std::lock_guard lock(mutex_);
      preferred_ = to->text();
    }
    look_around();
    return {verdict::what::again, nullptr};
  }
  // A call of the script met a key of a slot that is being moved; none was written before.
  const bool half_moved = refusal.text.find("non local key") != std::string::npos;
  if (refusal.is_error("TRYAGAIN") || half_moved) return {verdict::what::later, nullptr};
  if (refusal.is_error("CLUSTERDOWN") || what == trouble::demoted) {
    look_around();
    return {verdict::what::later, nullptr};
  }
  return {};
}

// Beyond the limit, a node is created but not remembered: it ends with its last user.
std::shared_ptr<node> cluster_topology::node_at(const net::target& where) {
  const std::lock_guard lock(mutex_);
  const auto found = nodes_.find(where.text());
  if (found != nodes_.end()) return found->second.it;
  auto made = make_node(where);
  if (!ended_ && nodes_.size() < node_limit) nodes_[where.text()] = {made, false};
  return made;
}

// Reachable nodes first, and among them the best informed; each once.
std::vector<std::shared_ptr<node>> cluster_topology::whom_to_ask() {
  for (const net::target& each : seeds_) static_cast<void>(node_at(each));
  struct candidate {
    bool down;
    std::uint64_t lot;
    std::shared_ptr<node> it;
  };
  std::vector<candidate> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [name, each] : nodes_) {
    const bool best = name == preferred_;
    all.push_back({each.down, best ? 0 : net().reactor->random(), each.it});
  }
  preferred_.clear();
  std::ranges::sort(all, [](const candidate& one, const candidate& other) {
    return std::pair(one.down, one.lot) < std::pair(other.down, other.lot);
  });
  std::vector<std::shared_ptr<node>> chosen;
  for (std::size_t i = 0; i < all.size() && i < asked_at_once; ++i) chosen.push_back(all[i].it);
  return chosen;
}

void cluster_topology::look_around() {
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (round_.missing > 0) {
      again_ = true;
      return;
    }
    const time_point now = net().reactor->now();
    if (now < not_before_) return rest(not_before_ - now);
    not_before_ = now + shortest_rest;
    again_ = false;
    number = round_.number + 1;
    round_ = {number, asked_at_once, false, std::nullopt, std::nullopt};
  }
  const auto those = whom_to_ask();
  {
    const std::lock_guard lock(mutex_);
    if (round_.number == number) round_.missing = those.size();
  }
  net::patience until(net().reactor->now() + round_limit);
  until.reach_by = until.deadline;  // a refused connection counts as an answer
  until.at_once = true;
  const command question = cluster_question();
  for (const auto& each : those) {
    each->send(
        question, until,
        [weak = weak_from_this(), number, from = std::weak_ptr(each)](const result<reply>& answer) {
          const auto self = std::static_pointer_cast<cluster_topology>(weak.lock());
          const auto who = from.lock();
          if (self != nullptr && who != nullptr) self->heard(number, who, answer);
        });
  }
}

void cluster_topology::heard(std::uint64_t number, const std::shared_ptr<node>& from,
                             const result<reply>& answer) {
  std::optional<cluster_map> map;
  if (answer) map = read_cluster(*answer, from->options().where.host, partitions());
  bool use = false;
  bool over = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_ || number != round_.number || round_.missing == 0) return;
    if (const auto mine = nodes_.find(from->options().where.text()); mine != nodes_.end()) {
      mine->second.down = !answer;
    }
    if (!answer) {
      round_.failure = answer.error();
    } else if (!map) {
      const bool both = answer->elements.size() == 2;
      const bool no_info = both && answer->elements[0].is_error();
      const reply& said = both ? answer->elements[no_info ? 0 : 1] : *answer;
      round_.failure =
          said.text.find("cluster support disabled") != std::string::npos
              ? error{errc::denied, from->where() + ": is not in a cluster; write redis://"}
          : said.is_error() ? to_error(said, "CLUSTER", from->where())
                            : error{errc::unavailable, from->where() + ": serves no slots"};
    } else if (map->epoch >= epoch_) {
      use = true;
      round_.taken = true;
    } else if (!round_.older || round_.older->epoch < map->epoch) {
      round_.older = map;
    }
    over = round_.missing == 1;
    if (over && !round_.taken && round_.older) {
      map = round_.older;
      use = true;
      round_.taken = true;
    }
    if (use) epoch_ = map->epoch;
    --round_.missing;
  }
  if (use) adopt(*map);
  if (over) round_over();
}

void cluster_topology::adopt(const cluster_map& map) {
  homes where(partitions());
  for (std::size_t i = 0; i < where.size(); ++i) {
    if (map.masters[i]) where[i] = node_at(*map.masters[i]);
  }
  settle(where);
  // Nodes that serve nothing any more and cannot be reached; others finish their work.
  const auto serving = nodes();
  std::vector<std::shared_ptr<node>> gone;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(nodes_, [&](const auto& each) {
      const bool idle = std::ranges::find(serving, each.second.it) == serving.end();
      if (idle && each.second.down) gone.push_back(each.second.it);
      return idle && each.second.down;
    });
  }
  for (const auto& each : gone) each->close();
}

bool cluster_topology::all_reached() {
  const auto serving = current();
  const std::lock_guard lock(mutex_);
  std::set<const node*> down;
  for (const auto& [name, each] : nodes_) {
    if (each.down) down.insert(each.it.get());
  }
  return std::ranges::none_of(serving, [&](const std::shared_ptr<node>& each) {
    return each == nullptr || down.contains(each.get());
  });
}

void cluster_topology::round_over() {
  std::optional<error> why;
  bool once_more = false;
  {
    const std::lock_guard lock(mutex_);
    once_more = std::exchange(again_, false);
    if (!round_.taken) why = round_.failure;
  }
  set_trouble(why ? why->detail : "nobody serves the slot");
  if (why) refuse_stalled(*why);
  if (once_more) return look_around();
  if (all_reached()) {
    const std::lock_guard lock(mutex_);
    rest_ = shortest_rest;
    return;
  }
  if (!in_demand()) return;
  const std::lock_guard lock(mutex_);
  rest_ = std::min(rest_ * 2, longest_rest);
  rest(rest_);
}

// Looks around after a rest. Called with the mutex held.
void cluster_topology::rest(duration at_most) {
  net().reactor->cancel(timer_);
  timer_ = net().reactor->at(net().reactor->now() + at_most, [weak = weak_from_this()] {
    const auto self = std::static_pointer_cast<cluster_topology>(weak.lock());
    if (self != nullptr) self->look_around();
  });
}

void cluster_topology::node_opened(const std::string& where) {
  const std::lock_guard lock(mutex_);
  if (const auto mine = nodes_.find(where); mine != nodes_.end()) mine->second.down = false;
}

void cluster_topology::node_ended(const std::string& where) {
  std::shared_ptr<node> gone;
  {
    const std::lock_guard lock(mutex_);
    const auto mine = nodes_.find(where);
    if (ended_ || mine == nodes_.end()) return;
    mine->second.down = true;
    gone = mine->second.it;
  }
  const homes serving = current();
  if (std::ranges::find(serving, gone) != serving.end()) look_around();
}

void cluster_topology::end() noexcept {
  std::map<std::string, known> nodes;
  spi::runtime::timer_id timer = 0;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    nodes.swap(nodes_);
    timer = timer_;
  }
  net().reactor->cancel(timer);
  for (const auto& [name, each] : nodes) each.it->close();
}

}  // namespace holdfast::redis
