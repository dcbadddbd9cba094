#include "stores/etcd/cluster_health.hpp"

#include <array>
#include <charconv>

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
// (etcd#20616). holdfast does not rely on either.
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

}  // namespace holdfast::etcd
