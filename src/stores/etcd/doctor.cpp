// Settings and health: do the members answer, is there a leader, may we read and write. No clock is
// looked at: etcd's leases count on the leader's, from when they are granted or kept alive.
#include "stores/etcd/cluster_health.hpp"
#include "stores/etcd/etcd_store.hpp"

#include <utility>

namespace holdfast::etcd {

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

flow etcd_store::do_probe(self_ptr self, net::patience until,
                          spi::completion<std::vector<spi::check>> done) {
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
      listed ? read_members(listed->body) : result<std::vector<member>>(failure(errc::unavailable));
  if (members) health.members(members->size());
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
  done(std::move(checks));
}

void etcd_store::probe(const spi::op_context& context,
                       spi::completion<std::vector<spi::check>> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  do_probe(shared_from_this(), context, std::move(done));
}

}  // namespace holdfast::etcd
