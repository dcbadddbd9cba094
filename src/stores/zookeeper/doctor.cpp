#include "stores/zookeeper/doctor.hpp"

#include "stores/zookeeper/zookeeper_store.hpp"

#include <algorithm>
#include <coroutine>
#include <mutex>
#include <optional>
#include <utility>

namespace holdfast::zookeeper {

namespace {

using status = spi::check::status;

std::string field(const std::string& text, const std::string& name) {
  const auto at = text.find(name);
  if (at == std::string::npos) return {};
  const auto from = at + name.size();
  return text.substr(from, text.find_first_of(",\r\n", from) - from);
}

}  // namespace

void ensemble_health::add(const std::string& server, const result<std::string>& answer) {
  ++configured_;
  if (!answer) {
    problems_ += "; " + server + ": " + answer.error().detail;
    return;
  }
  ++answering_;
  const std::string mode = field(*answer, "Mode: ");
  const bool idle = answer->find("not currently serving") != std::string::npos;
  if (idle) ++idle_;
  if (mode.empty() && !idle) ++refusing_;
  if (mode == "leader") ++leaders_;
  if (mode == "follower" || mode == "observer") ++followers_;
  if (mode == "standalone") ++standalone_;
  const std::string version = field(*answer, "Zookeeper version: ");
  const std::string number = version.substr(0, version.find('-'));
  if (!number.empty() && versions_.find(number) == std::string::npos) {
    versions_ += (versions_.empty() ? "" : ", ") + number;
  }
}

std::vector<spi::check> ensemble_health::checks() const { return {servers(), words(), quorum()}; }

spi::check ensemble_health::servers() const {
  spi::check check{"servers", status::ok, {}, {}};
  check.detail = std::to_string(answering_) + " of " + std::to_string(configured_) + " answer" +
                 (versions_.empty() ? "" : ", version " + versions_);
  if (answering_ < configured_) {
    check.state = status::warn;
    check.detail += problems_;
    check.remedy = "start the servers that do not answer, or take them out of the URL";
  }
  if (answering_ == 0) check.state = status::fail;
  return check;
}

spi::check ensemble_health::words() const {
  if (answering_ == 0) return {"four-letter words", status::warn, "nobody answers", {}};
  if (refusing_ == 0) return {"four-letter words", status::ok, "srvr is answered", {}};
  return {"four-letter words", status::warn,
          "srvr is refused: the health of the ensemble cannot be seen",
          "4lw.commands.whitelist=srvr in zoo.cfg"};
}

// A follower that serves has a leader, whether or not the URL lists that leader.
spi::check ensemble_health::quorum() const {
  if (standalone_ > 0) {
    return {"quorum", status::warn, "a standalone server: when it is down, there are no locks",
            "three or five servers for what must stay up"};
  }
  if (leaders_ > 0) return {"quorum", status::ok, "a leader is there", {}};
  if (followers_ > 0) {
    return {"quorum", status::warn, "none of the servers in the URL leads",
            "name all servers of the ensemble in the URL"};
  }
  if (idle_ > 0) {
    return {
        "quorum", status::fail,
        std::to_string(idle_) + " of " + std::to_string(configured_) +
            " answer that they are not serving: there is no majority, or they are just starting",
        "start the other servers of the ensemble; see its log for what keeps them apart"};
  }
  return {"quorum", status::warn, "not known: no server says who leads",
          "the check of sessions tells whether they serve"};
}

namespace {

constexpr std::size_t answer_limit = 65'536;

// One question under way. Thread-safe; answers once.
class word_call final : public net::stream_user, public std::enable_shared_from_this<word_call> {
 public:
  word_call(net::network net, std::string word) : net_(std::move(net)), word_(std::move(word)) {}

  void start(const net::target& where, std::shared_ptr<const net::tls_context> tls,
             time_point deadline, spi::completion<std::string> done) {
    {
      const std::scoped_lock lock(mutex_);
      done_ = std::move(done);
      timer_ = net_.reactor->at(deadline, [self = shared_from_this()] {
        self->finish(failure(errc::unavailable, "no answer in time"));
      });
    }
    net::connector::start(net_, where, std::move(tls), deadline,
                          [self = shared_from_this()](auto made) {
                            if (!made) return self->finish(tl::unexpected(made.error()));
                            self->connected(std::move(*made));
                          });
  }

  void received(std::string_view bytes) override {
    const std::scoped_lock lock(mutex_);
    if (text_.size() < answer_limit) text_ += bytes;
  }
  void ended(const error&) override {
    std::string text;
    {
      const std::scoped_lock lock(mutex_);
      text = text_;
    }
    finish(std::move(text));
  }

 private:
  void connected(std::shared_ptr<net::stream> made) {
    {
      const std::scoped_lock lock(mutex_);
      stream_ = made;
    }
    made->start(weak_from_this());
    made->queue(word_);
    made->flush();
  }
  void finish(result<std::string> answer) {
    std::unique_lock lock(mutex_);
    auto done = std::exchange(done_, nullptr);
    const auto open = std::exchange(stream_, nullptr);
    const auto timer = timer_;
    lock.unlock();
    net_.reactor->cancel(timer);
    if (open != nullptr) open->close();
    if (done) done(std::move(answer));
  }

  const net::network net_;
  const std::string word_;
  std::mutex mutex_;
  spi::completion<std::string> done_;    // guarded by mutex_
  std::string text_;                     // guarded by mutex_
  std::shared_ptr<net::stream> stream_;  // guarded by mutex_
  spi::runtime::timer_id timer_ = 0;     // guarded by mutex_
};

struct word_wait {
  std::shared_ptr<word_call> call;
  net::target where;
  std::shared_ptr<const net::tls_context> tls;
  time_point deadline;
  std::optional<result<std::string>> answer{};

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> then) {
    const auto kept = call;  // this may end before start() returns
    kept->start(where, tls, deadline, [this, then](result<std::string> text) {
      answer.emplace(std::move(text));
      then.resume();
    });
  }
  result<std::string> await_resume() { return std::move(*answer); }
};

}  // namespace

task<result<std::string>> ask_word(net::network net, net::target where,
                                   std::shared_ptr<const net::tls_context> tls, std::string word,
                                   time_point deadline) {
  word_wait wait{std::make_shared<word_call>(std::move(net), std::move(word)), std::move(where),
                 std::move(tls), deadline};
  co_return co_await wait;
}

// Settings and health: is there a quorum, who may do what, how long do sessions live. Clocks are
// not checked: ZooKeeper does not depend on them.

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

task<result<std::vector<spi::check>>> zookeeper_store::do_probe(self_ptr self,
                                                                net::patience until) {
  const server_options& options = *self->options_;
  ensemble_health health;
  for (const net::target& each : options.servers) {
    const result<std::string> answer =
        co_await ask_word(self->net_, each, options.tls, "srvr", until.deadline);
    health.add(each.text(), answer);
  }
  std::vector<spi::check> checks = health.checks();
  const auto life = self->session_for(asked_session);
  const std::string root = options.root.empty() ? "/" : options.root;
  question ask{make_get_acl(root)};
  const result<reply> acl = co_await ask_one(life, std::move(ask), until.deadline);
  if (!acl) {
    spi::check check{"sessions", spi::check::status::fail, acl.error().detail, {}};
    check.remedy = "see whether the servers have a quorum and take clients on this port";
    checks.push_back(std::move(check));
  } else {
    checks.push_back(check_sessions(life->timeout()));
    const auto entries = read_acl(acl->body);
    if (acl->code == code::ok && entries) checks.push_back(check_access(*entries, root));
  }
  co_return checks;
}

}  // namespace holdfast::zookeeper
