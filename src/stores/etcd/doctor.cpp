#include "stores/etcd/doctor.hpp"

#include "stores/etcd/etcd_store.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace holdfast::etcd {

namespace {

using check_status = spi::check::status;

using version_number = std::array<int, 3>;

version_number number_of(const std::string& text) {
  version_number number{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int& part : number) {
    const auto [next, problem] = std::from_chars(at, end, part);
    if (problem != std::errc{}) break;
    at = next == end ? next : next + 1;
  }
  return number;
}

// A leader that is stuck answers keepalives (etcd#15247), and leases that are gone are kept alive
// (etcd#20616). holdfast relies on neither.
bool has_lease_faults(const version_number& number) {
  if (number[0] != 3) return false;
  if (number[1] == 4) return number[2] < 38;
  return number[1] == 5 && number[2] < 23;
}

}  // namespace

void cluster_health::add(const std::string& server, const result<status_answer>& answer) {
  ++configured_;
  if (!answer) {
    problems_ += "; " + server + ": " + answer.error().detail;
    return;
  }
  ++answering_;
  versions_.insert(answer->version);
  if (answer->leader == 0) {
    ++leaderless_;
  } else {
    leaders_.insert(answer->leader);
  }
  for (const std::string& each : answer->errors) errors_.insert(each);
}

std::vector<spi::check> cluster_health::checks() const {
  return {servers(), version(), leader(), alarms()};
}

spi::check cluster_health::servers() const {
  spi::check check{"members", check_status::ok, {}, {}};
  check.detail = std::to_string(answering_) + " of " + std::to_string(configured_) + " answer";
  if (members_ == 1) {
    check.state = check_status::warn;
    check.detail += "; the cluster has one member: when it is down, there are no locks";
    check.remedy = "three or five members for what must stay up";
  } else if (members_ > configured_) {
    check.state = check_status::warn;
    check.detail += "; the cluster has " + std::to_string(members_) + " members";
    check.remedy =
        "name all members in the URL: when those in it are down, the others are not asked";
  }
  if (answering_ < configured_) {
    check.state = answering_ == 0 ? check_status::fail : check_status::warn;
    check.detail += problems_;
    check.remedy = "start the members that do not answer, or take them out of the URL";
  }
  return check;
}

spi::check cluster_health::version() const {
  spi::check check{"version", check_status::ok, {}, {}};
  for (const std::string& each : versions_) {
    check.detail += (check.detail.empty() ? "" : ", ") + each;
    const version_number number = number_of(each);
    if (number[0] < 3 || (number[0] == 3 && number[1] < 4)) {
      check.state = check_status::fail;
      check.remedy = "etcd 3.4 or later is needed";
    } else if (has_lease_faults(number) && check.state == check_status::ok) {
      check.state = check_status::warn;
      check.remedy =
          "3.4.38, 3.5.23 or later: other clients may take a lease for alive that is not";
    }
  }
  if (versions_.empty()) return {"version", check_status::warn, "not known", {}};
  return check;
}

spi::check cluster_health::leader() const {
  if (answering_ == 0) return {"leader", check_status::warn, "not known", {}};
  if (leaders_.empty()) {
    return {"leader", check_status::fail, "no member has a leader: there is no majority",
            "start the other members; see their logs for what keeps them apart"};
  }
  if (leaders_.size() > 1 || leaderless_ > 0) {
    return {"leader", check_status::warn, "the members do not agree on a leader just now",
            "look again; if it stays so, see what keeps them apart"};
  }
  return {"leader", check_status::ok, "a leader is there", {}};
}

spi::check cluster_health::alarms() const {
  if (answering_ == 0) return {"alarms", check_status::warn, "not known", {}};
  if (errors_.empty()) return {"alarms", check_status::ok, "none", {}};
  spi::check check{"alarms", check_status::fail, {}, {}};
  for (const std::string& each : errors_) {
    check.detail += (check.detail.empty() ? "" : "; ") + each;
  }
  check.remedy = "etcdctl alarm list; of space: compact, defragment, then etcdctl alarm disarm";
  return check;
}

// Settings and health: do the members answer, is there a leader, may we read and write. Clocks are
// not checked: etcd's leases use the leader's clock, from when they are granted or kept alive.

namespace {

spi::check check_access(const result<reply>& read, const server_options& options) {
  const std::string where = options.root.empty() ? "all keys" : options.root;
  if (!read) {
    return {"access", spi::check::status::fail, read.error().detail,
            "a user that may read and write " + where + ", in the URL"};
  }
  if (options.user.empty()) {
    return {"access", spi::check::status::warn,
            "no user in the URL: everybody who reaches the cluster may take and remove locks",
            "etcdctl auth enable, and a user with a role for " + where};
  }
  return {"access", spi::check::status::ok, "as " + options.user, {}};
}

spi::check check_lease(const result<reply>& granted) {
  constexpr std::int64_t asked = 1;
  spi::check check{"leases", spi::check::status::ok, {}, {}};
  const auto lease =
      granted ? read_lease(granted->body) : result<lease_answer>(tl::unexpected(granted.error()));
  if (!lease) {
    check.state = spi::check::status::fail;
    check.detail = lease.error().detail;
    check.remedy = "see whether the cluster has a leader and room";
    return check;
  }
  check.detail = "the shortest is " + std::to_string(lease->seconds) + " s";
  if (lease->seconds > asked) {
    check.detail += ": a holder that was killed with a shorter ttl keeps its lock for that long";
  }
  return check;
}

}  // namespace

task<result<std::vector<spi::check>>> etcd_store::do_probe(self_ptr self, net::patience until) {
  cluster_health health;
  for (const net::target& each : self->options_->servers) {
    auto alone = std::make_shared<server_options>(*self->options_);
    alone->servers = {each};
    const auto way = channel::make(self->net_, alone);
    const time_point limit = std::min(until.deadline, self->now() + alone->connect_limit);
    const std::string where = each.text();
    call asks{method::status, {}};
    const result<reply> answer = co_await ask_one(way, asks, "ask", where, limit);
    health.add(each.text(), answer ? read_status(answer->body)
                                   : result<status_answer>(tl::unexpected(answer.error())));
    self->net_.reactor->post([way] { way->close(); });
  }
  call lists{method::member_list, {}};
  const result<reply> listed = co_await ask_one(self->way_, lists, "list", "the members", until);
  const auto members =
      listed ? read_member_count(listed->body) : result<std::size_t>(failure(errc::unavailable));
  if (members) health.members(*members);
  std::vector<spi::check> checks = health.checks();
  range_options few;
  few.limit = 1;
  few.keys_only = true;
  call reads = range_call(keys_with(self->options_->root), few);
  const result<reply> read =
      co_await ask_one(self->way_, reads, "read", self->options_->root, until);
  checks.push_back(check_access(read, *self->options_));
  call grants = lease_grant_call(1);
  const result<reply> granted = co_await ask_one(self->way_, grants, "grant", "a lease", until);
  checks.push_back(check_lease(granted));
  co_return checks;
}

}  // namespace holdfast::etcd
