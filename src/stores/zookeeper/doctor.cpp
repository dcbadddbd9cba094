// Settings and health: is there a quorum, who may do what, how long do sessions live. No clock is
// looked at: ZooKeeper needs none.
#include "stores/zookeeper/ensemble_health.hpp"
#include "stores/zookeeper/zookeeper_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::zookeeper {

namespace {

constexpr duration asked_session = std::chrono::seconds(30);

std::string milliseconds(duration time) {
  return std::to_string(time / std::chrono::milliseconds(1)) + " ms";
}

spi::check check_sessions(duration given) {
  spi::check check{"sessions", spi::check::status::ok, {}, {}};
  check.detail = "asked for " + milliseconds(asked_session) + ", given " + milliseconds(given);
  if (given != asked_session) {
    check.state = spi::check::status::warn;
    check.remedy = "leases live as long as a session: see maxSessionTimeout and minSessionTimeout";
  }
  return check;
}

spi::check check_access(const std::vector<acl_entry>& acl, const std::string& path) {
  constexpr std::int32_t create_and_delete = 4 | 8;
  spi::check check{"access", spi::check::status::ok, path + " is not open to everybody", {}};
  const bool open = std::any_of(acl.begin(), acl.end(), [](const acl_entry& each) {
    return each.scheme == "world" && (each.permissions & create_and_delete) != 0;
  });
  if (open) {
    check.state = spi::check::status::warn;
    check.detail = "everybody may take and remove locks below " + path;
    check.remedy = "a user and a password in the URL, acl=creator, and an ACL on " + path;
  }
  return check;
}

}  // namespace

flow zookeeper_store::do_probe(self_ptr self, time_point deadline,
                               spi::completion<std::vector<spi::check>> done) {
  const server_options& options = *self->options_;
  ensemble_health health;
  for (const net::target& each : options.servers) {
    const result<std::string> answer =
        co_await ask_word(self->net_, each, options.tls, "srvr", deadline);
    health.add(each.text(), answer);
  }
  std::vector<spi::check> checks = health.checks();
  const auto life = self->session_for(asked_session);
  const std::string root = options.root.empty() ? "/" : options.root;
  question ask{make_get_acl(root), nullptr, {}};
  const result<reply> acl = co_await ask_one(life, std::move(ask), deadline);
  if (!acl) {
    spi::check check{"sessions", spi::check::status::fail, acl.error().detail, {}};
    check.remedy = "see whether the servers have a quorum and take clients on this port";
    checks.push_back(std::move(check));
  } else {
    checks.push_back(check_sessions(life->timeout()));
    const auto entries = read_acl(acl->body);
    if (acl->code == code::ok && entries) checks.push_back(check_access(*entries, root));
  }
  done(std::move(checks));
}

void zookeeper_store::probe(const spi::op_context& context,
                            spi::completion<std::vector<spi::check>> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  do_probe(shared_from_this(), context.deadline, std::move(done));
}

}  // namespace holdfast::zookeeper
