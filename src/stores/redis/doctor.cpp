#include "stores/redis/doctor.hpp"

#include "stores/redis/client/reply.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace holdfast::redis {

namespace {

using status = spi::check::status;

std::int64_t number(std::string_view text) noexcept {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool is_local(const net::target& where) noexcept {
  return !where.path.empty() || where.host == "localhost" || where.host == "::1" ||
         where.host.starts_with("127.");
}

}  // namespace

std::string_view info_field(std::string_view info, std::string_view name) noexcept {
  std::size_t at = 0;
  while (at < info.size()) {
    const std::size_t end = std::min(info.find("\r\n", at), info.size());
    const std::string_view line = info.substr(at, end - at);
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == ':') {
      return line.substr(name.size() + 1);
    }
    at = end + 2;
  }
  return {};
}

spi::check check_server(const server_info& server, const std::string& where) {
  return {"server", status::ok, where + " answers, version " + server.version.text(), ""};
}

spi::check check_eviction(std::string_view info) {
  const std::string policy(info_field(info, "maxmemory_policy"));
  if (policy.empty()) {
    return {"eviction", status::warn, "the server does not tell its maxmemory-policy",
            "allow INFO, and see that the policy is noeviction"};
  }
  if (policy == "noeviction") return {"eviction", status::ok, "maxmemory-policy noeviction", ""};
  const bool limited = number(info_field(info, "maxmemory")) > 0;
  return {"eviction", limited ? status::fail : status::warn,
          "maxmemory-policy " + policy +
              (limited ? ": the server may delete locks" : ", but maxmemory is not set"),
          "CONFIG SET maxmemory-policy noeviction, or give locks a server of their own"};
}

spi::check check_memory(std::string_view info) {
  const std::int64_t most = number(info_field(info, "maxmemory"));
  const std::int64_t used = number(info_field(info, "used_memory"));
  if (most == 0) return {"memory", status::ok, "maxmemory is not set", ""};
  const std::int64_t percent = used * 100 / most;
  const std::string detail = std::to_string(percent) + " % of maxmemory used";
  if (percent >= 100) {
    return {"memory", status::fail, detail + ": no new lock can be taken",
            "raise maxmemory, or free memory"};
  }
  if (percent >= 90) return {"memory", status::warn, detail, "raise maxmemory, or free memory"};
  return {"memory", status::ok, detail, ""};
}

spi::check check_persistence(std::string_view info, const std::optional<std::string>& fsync) {
  if (info_field(info, "aof_last_write_status") == "err" ||
      info_field(info, "rdb_last_bgsave_status") == "err") {
    return {"persistence", status::fail, "the server cannot write to its disk",
            "look at its disk and log; until then it may refuse every write"};
  }
  if (info_field(info, "aof_enabled") != "1") {
    return {
        "persistence", status::warn,
        "appendonly is off: a restart forgets all holders; fencing tokens still grow",
        "CONFIG SET appendonly yes, and appendfsync always where a power cut must not lose a lock"};
  }
  if (fsync && *fsync == "always") {
    return {"persistence", status::ok, "appendonly, appendfsync always", ""};
  }
  return {"persistence", status::ok,
          "appendonly, appendfsync " + fsync.value_or("unknown") +
              ": a power cut may lose the last second",
          ""};
}

spi::check check_replicas(std::string_view info) {
  const std::int64_t count = number(info_field(info, "connected_slaves"));
  if (count == 0) return {"replicas", status::ok, "none", ""};
  return {
      "replicas", status::warn,
      std::to_string(count) + ": replication is asynchronous, a failover may forget the last locks",
      "let the resource check fencing tokens"};
}

spi::check check_permissions(const std::vector<std::string>& refused, const std::string& user,
                             const std::string& untried) {
  if (refused.empty()) {
    return {"permissions", status::ok,
            "all commands and keys allowed" + (untried.empty() ? "" : ", " + untried), ""};
  }
  std::string list;
  for (const std::string& one : refused) list += (list.empty() ? "" : " ") + one;
  return {"permissions", status::fail, "not allowed: " + list,
          "ACL SETUSER " + (user.empty() ? std::string("default") : user) + " " + list};
}

spi::check check_channels(const std::optional<error>& refusal, const std::string& grants) {
  if (!refusal) return {"channels", status::ok, "waiters are woken by messages", ""};
  return {"channels", status::fail, "cannot subscribe: " + refusal->detail, "grant " + grants};
}

spi::check check_scripts(bool functions, const std::optional<error>& refusal) {
  if (!refusal) {
    return {"scripts", status::ok,
            functions ? "the library of functions is loaded" : "Lua scripts run", ""};
  }
  if (functions) {
    return {"scripts", status::fail, refusal->detail,
            "grant +fcall, and +function|load or let an administrator load the library: holdfast "
            "redis-library | redis-cli -x FUNCTION LOAD; where there are no functions: "
            "?functions=off"};
  }
  return {"scripts", status::fail, refusal->detail,
          "grant +eval +evalsha; servers and proxies without Lua cannot be used"};
}

duration clock_ahead(duration theirs, duration asked, duration heard) noexcept {
  if (theirs < asked) return theirs - asked;
  return std::max(theirs - heard, duration{0});
}

spi::check check_clock(duration ahead) {
  constexpr duration tolerated = std::chrono::seconds(2);
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(ahead).count();
  const std::string detail = "the server's clock is " + std::to_string(ms < 0 ? -ms : ms) + " ms " +
                             (ms < 0 ? "behind" : "ahead of") + " ours";
  if (ahead < -tolerated || ahead > tolerated) {
    return {"clock", status::warn, detail,
            "let NTP keep both; leases end by the server's clock, which must not jump"};
  }
  return {"clock", status::ok, detail, ""};
}

spi::check check_transport(const server_options& options) {
  if (options.tls != nullptr && !options.tls->verifies()) {
    return {"transport", status::warn, "TLS without verification: any server is trusted",
            "give ca=FILE instead of verify=none"};
  }
  if (options.tls != nullptr) return {"transport", status::ok, "TLS, verified", ""};
  if (is_local(options.where)) return {"transport", status::ok, "on this machine", ""};
  if (!options.password.empty()) {
    return {"transport", status::warn, "the password is sent over the network unencrypted",
            "use rediss://"};
  }
  return {"transport", status::warn, "plain text over the network", "use rediss://"};
}

spi::check check_access(const server_options& options) {
  if (!options.password.empty()) return {"access", status::ok, "with a password", ""};
  if (is_local(options.where)) {
    return {"access", status::ok, "no password, on this machine", ""};
  }
  return {"access", status::warn, "anyone who can reach the server can take and break locks",
          "create a user for locks, with a password"};
}

namespace {

constexpr partition tried_partition = 0;
// The questions that are asked beside the trials, first in the list.
enum question : std::size_t { ask_info, ask_fsync, ask_time, ask_script };

}  // namespace

// Everything that the scripts call, on keys of ours that are deleted or end within a second.
requirements native_requirements(std::shared_ptr<const script> tried) {
  const std::string at = partition_prefix(tried_partition) + "doctor:";
  const std::string s = at + "string";
  const std::string h = at + "hash";
  const std::string z = at + "sorted";
  const std::string m = at + "set";
  const std::string far = "4102444800000";
  const std::vector<std::vector<std::string>> all{{"SET", s, "1", "PX", "1000"},
                                                  {"MGET", s},
                                                  {"EXISTS", s},
                                                  {"PEXPIRE", s, "1000"},
                                                  {"HSET", h, "f", "1"},
                                                  {"HGET", h, "f"},
                                                  {"HMGET", h, "f"},
                                                  {"HLEN", h},
                                                  {"HKEYS", h},
                                                  {"HVALS", h},
                                                  {"HSCAN", h, "0"},
                                                  {"HDEL", h, "f"},
                                                  {"ZADD", z, "1", "m"},
                                                  {"ZSCORE", z, "m"},
                                                  {"ZREMRANGEBYSCORE", z, "-inf", "0"},
                                                  {"PEXPIREAT", z, far},
                                                  {"SADD", m, "m"},
                                                  {"SISMEMBER", m, "m"},
                                                  {"SREM", m, "m"},
                                                  {"DEL", s, h, z, m},
                                                  {"SCAN", "0", "MATCH", at + "*"},
                                                  {"PUBSUB", "NUMSUB", at + "channel"},
                                                  {"PUBLISH", at + "channel", ""}};
  requirements needed;
  for (const auto& words : all) needed.calls.push_back({words, "~holdfast:*"});
  needed.channel = partition_prefix(tried_partition) + "c:doctor";
  needed.channels = "&holdfast:*";
  needed.listening = "+subscribe +publish +pubsub &holdfast:*";
  needed.tried = std::move(tried);
  return needed;
}

namespace {

std::string lower(std::string_view text) {
  std::string made(text);
  std::ranges::transform(made, made.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return made;
}

duration wall_clock() { return std::chrono::system_clock::now().time_since_epoch(); }

duration clock_of(const reply& time) {
  std::array<std::int64_t, 2> parts{};
  for (std::size_t i = 0; i < 2 && i < time.elements.size(); ++i) {
    const std::string_view text = time.elements[i].words();
    std::from_chars(text.data(), text.data() + text.size(), parts[i]);
  }
  return std::chrono::seconds(parts[0]) + std::chrono::microseconds(parts[1]);
}

}  // namespace

// The examinations of several nodes together.
struct doctor::round {
  std::shared_ptr<spi::runtime> runtime;
  std::shared_ptr<const requirements> needed;
  net::patience until;
  spi::completion<checks> done;
  std::vector<std::shared_ptr<node>> left;
  checks all;
};

doctor::doctor(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<node> patient,
               std::shared_ptr<const requirements> needed, const net::patience& until,
               spi::completion<checks> done)
    : runtime_(std::move(runtime)),
      node_(std::move(patient)),
      needed_(std::move(needed)),
      until_(until),
      done_(std::move(done)) {
  trials_.push_back({command{"INFO"}, "+info", ""});
  trials_.push_back({command{"CONFIG", "GET", "appendfsync"}, "", ""});
  trials_.push_back({command{"TIME"}, "+time", ""});
  trials_.push_back({needed_->tried->call({}, {}), "", ""});
  for (const auto& [words, keys] : needed_->calls) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    trials_.push_back({command(views), "+" + lower(words.front()), keys});
  }
  answers_.resize(trials_.size());
  missing_ = trials_.size() + 1;
}

void doctor::start(std::shared_ptr<spi::runtime> runtime, const std::shared_ptr<topology>& servers,
                   requirements needed, const net::patience& until, spi::completion<checks> done) {
  auto all = std::make_shared<round>(round{std::move(runtime),
                                           std::make_shared<const requirements>(std::move(needed)),
                                           until,
                                           std::move(done),
                                           {},
                                           {}});
  servers->ready(until, [all, servers](const result<void>& known) {
    if (!known) return all->done(tl::unexpected(known.error()));
    all->left = servers->nodes();
    if (all->left.empty()) {
      return all->done(failure(errc::unavailable, servers->where() + ": no node is known"));
    }
    examine_next(all);
  });
}

// Each node in turn.
void doctor::examine_next(const std::shared_ptr<round>& all) {
  const auto patient = all->left.back();
  all->left.pop_back();
  const std::shared_ptr<doctor> made(
      new doctor(all->runtime, patient, all->needed, all->until, [all](result<checks> found) {
        if (!found) return all->done(tl::unexpected(std::move(found.error())));
        std::ranges::move(*found, std::back_inserter(all->all));
        if (all->left.empty()) return all->done(std::move(all->all));
        examine_next(all);
      }));
  made->begin();
}

void doctor::begin() {
  result<std::unique_ptr<spi::subscription>> made;
  if (!needed_->channel.empty()) {
    made = node_->listen({channel_id::flavour::classic, needed_->channel}, weak_from_this());
  }
  {
    const std::lock_guard lock(mutex_);
    keep_ = shared_from_this();
    if (made) subscription_ = std::move(*made);
    timer_ = runtime_->at(until_.deadline, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self != nullptr) self->take_channels(error{errc::unavailable, "no answer in time"});
    });
  }
  if (!made) take_channels(made.error());
  if (needed_->channel.empty()) take_channels(std::nullopt);
  asked_ = wall_clock();
  for (std::size_t i = 0; i < trials_.size(); ++i) ask(i);
}

void doctor::ask(std::size_t index) {
  auto done = [self = shared_from_this(), index](const result<reply>& answer) {
    self->take(index, answer);
  };
  if (index == ask_script) {
    return node_->run(tried_partition,
                      make_call(*needed_->tried, trials_[index].what, until_, std::move(done)));
  }
  node_->send(trials_[index].what, until_, std::move(done));
}

void doctor::take(std::size_t index, const result<reply>& answer) {
  {
    const std::lock_guard lock(mutex_);
    answers_[index] = answer;
  }
  // Without a connection no subscription is confirmed either.
  if (!answer) take_channels(answer.error());
  arrived();
}

void doctor::confirmed() { take_channels(std::nullopt); }
void doctor::interrupted(const error& why) { take_channels(why); }

void doctor::take_channels(std::optional<error> refusal) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(channels_known_, true)) return;
    channels_refusal_ = std::move(refusal);
  }
  arrived();
}

void doctor::arrived() {
  {
    const std::lock_guard lock(mutex_);
    if (--missing_ > 0) return;
  }
  conclude();
}

spi::check doctor::script_check() const {
  const server_info server = node_->server().value_or(server_info{});
  const bool functions = node_->options().functions && needed_->tried->functions() != nullptr &&
                         server.version >= first_with_functions;
  const reply& answer = **answers_[ask_script];
  if (!answer.is_error()) return check_scripts(functions, std::nullopt);
  return check_scripts(functions,
                       to_error(answer, functions ? "FCALL" : "EVALSHA", node_->where()));
}

std::vector<std::string> doctor::refused() const {
  std::vector<std::string> grants;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    const reply& answer = **answers_[i];
    if (trials_[i].grant.empty() || !answer.is_error() || classify(answer) != trouble::denied) {
      continue;
    }
    const auto speaks_of = [&](const char* what) {
      return answer.text.find(what) != answer.text.npos;
    };
    const std::string& grant = speaks_of("channel") ? needed_->channels
                               : speaks_of("key")   ? trials_[i].keys
                                                    : trials_[i].grant;
    if (std::ranges::find(grants, grant) == grants.end()) grants.push_back(grant);
  }
  return grants;
}

// Everything is answered: nobody else uses the members any more.
void doctor::conclude() {
  const std::shared_ptr<doctor> keep = std::move(keep_);
  runtime_->cancel(timer_);
  subscription_.reset();
  for (const auto& answer : answers_) {
    if (!*answer) return done_(tl::unexpected(answer->error()));
  }
  const auto reply_to = [this](std::size_t index) -> const reply& { return **answers_[index]; };
  std::optional<std::string> sync;
  if (const reply& answer = reply_to(ask_fsync); answer.elements.size() == 2) {
    sync = std::string(answer.elements[1].words());
  }
  const std::string_view facts = reply_to(ask_info).words();
  const server_options& options = node_->options();
  checks found;
  found.push_back(check_server(node_->server().value_or(server_info{}), node_->where()));
  found.push_back(check_eviction(facts));
  found.push_back(check_memory(facts));
  found.push_back(check_persistence(facts, sync));
  found.push_back(check_replicas(facts));
  found.push_back(check_permissions(refused(), options.user, needed_->untried));
  if (!needed_->channel.empty()) {
    found.push_back(check_channels(channels_refusal_, needed_->listening));
  }
  found.push_back(script_check());
  if (!reply_to(ask_time).is_error()) {
    found.push_back(check_clock(clock_ahead(clock_of(reply_to(ask_time)), asked_, wall_clock())));
  }
  found.push_back(check_transport(options));
  found.push_back(check_access(options));
  done_(std::move(found));
}

}  // namespace holdfast::redis
