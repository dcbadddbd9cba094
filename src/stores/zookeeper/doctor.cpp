// Settings and health: is there a quorum, who may do what, how long do sessions live. No clock is
// looked at: ZooKeeper needs none.
#include "stores/zookeeper/four_letters.hpp"
#include "stores/zookeeper/zookeeper_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::zookeeper {

namespace {

constexpr duration asked_session = std::chrono::seconds(30);

std::string field(const std::string& text, const std::string& name) {
  const auto at = text.find(name);
  if (at == std::string::npos) return {};
  const auto from = at + name.size();
  return text.substr(from, text.find_first_of(",\r\n", from) - from);
}

std::string milliseconds(duration time) {
  return std::to_string(time / std::chrono::milliseconds(1)) + " ms";
}

struct ensemble {
  std::size_t configured = 0;
  std::size_t answering = 0;
  std::size_t silent_words = 0;
  std::size_t leaders = 0;
  std::size_t standalone = 0;
  std::string versions;
  std::string problems;
};

spi::check check_servers(const ensemble& seen) {
  spi::check check{"servers", spi::check::status::ok, {}, {}};
  check.detail = std::to_string(seen.answering) + " of " + std::to_string(seen.configured) +
                 " answer" + (seen.versions.empty() ? "" : ", version " + seen.versions);
  if (seen.answering < seen.configured) {
    check.state = spi::check::status::warn;
    check.detail += seen.problems;
    check.remedy = "start the servers that do not answer, or take them out of the URL";
  }
  if (seen.answering == 0) check.state = spi::check::status::fail;
  return check;
}

spi::check check_words(const ensemble& seen) {
  spi::check check{"four-letter words", spi::check::status::ok, "srvr is answered", {}};
  if (seen.silent_words > 0) {
    check.state = spi::check::status::warn;
    check.detail = "srvr is refused: the health of the ensemble cannot be seen";
    check.remedy = "4lw.commands.whitelist=srvr in zoo.cfg";
  }
  return check;
}

spi::check check_quorum(const ensemble& seen) {
  spi::check check{"quorum", spi::check::status::ok, "a leader is there", {}};
  if (seen.standalone > 0) {
    check.state = spi::check::status::warn;
    check.detail = "a standalone server: when it is down, there are no locks";
    check.remedy = "three or five servers for what must stay up";
  } else if (seen.leaders == 0 && seen.silent_words == 0) {
    check.state = spi::check::status::warn;
    check.detail = "none of the servers in the URL leads";
    check.remedy = "name all servers of the ensemble in the URL";
  }
  return check;
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
  std::vector<spi::check> checks;
  ensemble seen;
  seen.configured = options.servers.size();
  for (const net::target& each : options.servers) {
    const result<std::string> answer =
        co_await ask_word(self->net_, each, options.tls, "srvr", deadline);
    if (!answer) {
      seen.problems += "; " + each.text() + ": " + answer.error().detail;
      continue;
    }
    ++seen.answering;
    const std::string mode = field(*answer, "Mode: ");
    if (mode.empty()) ++seen.silent_words;
    if (mode == "leader") ++seen.leaders;
    if (mode == "standalone") ++seen.standalone;
    const std::string version = field(*answer, "Zookeeper version: ");
    const std::string number = version.substr(0, version.find('-'));
    if (!number.empty() && seen.versions.find(number) == std::string::npos) {
      seen.versions += (seen.versions.empty() ? "" : ", ") + number;
    }
  }
  checks.push_back(check_servers(seen));
  checks.push_back(check_words(seen));
  checks.push_back(check_quorum(seen));
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
