// What the tests of the scripts share: the scripts themselves on a real server, called one by one,
// by processes that may or may not be subscribed.
#pragma once

#include "redis_client_harness.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/scripts.hpp"
#include "stores/redis/topology.hpp"
#include "stores/redis/wire.hpp"
#include "support/redis_server.hpp"

#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

// The name of a process in the scripts: 16 characters.
inline std::string process_name(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

// One process's message_listener: what was pushed to it, in order.
class message_listener final : public redis::channel_listener {
 public:
  void confirmed() override { confirmed_.store(true); }
  void interrupted(const error&) override { confirmed_.store(false); }
  void message(std::string_view payload) override {
    const std::lock_guard lock(mutex_);
    for (const redis::push& one : redis::pushes_of(payload)) heard_.push_back(one);
  }
  [[nodiscard]] bool is_confirmed() const { return confirmed_.load(); }
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return heard_.size();
  }
  std::vector<redis::push> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(heard_, {});
  }

 private:
  std::atomic<bool> confirmed_{false};
  mutable std::mutex mutex_;
  std::vector<redis::push> heard_;  // guarded by mutex_
};

// Counts the events of a partition.
class event_counter final : public redis::channel_listener {
 public:
  void confirmed() override { confirmed_.store(true); }
  void interrupted(const error&) override {}
  void message(std::string_view payload) override {
    const auto found = redis::events_of(payload);
    if (found) count_.fetch_add(found->events.size());
  }
  [[nodiscard]] bool is_confirmed() const { return confirmed_.load(); }
  [[nodiscard]] std::size_t count() const { return count_.load(); }

 private:
  std::atomic<bool> confirmed_{false};
  std::atomic<std::size_t> count_{0};
};

// The scripts with other time limits, so that a test need not wait for the real ones; as functions,
// in a library of their own, and as scripts.
class short_scripts {
 public:
  struct times {
    duration waiter_lease = 30s;
    duration tombstone_extra = 60s;
  };
  explicit short_scripts(const times& how)
      : how_(how),
        made_(redis::scripts::make(redis::channel_id::flavour::classic)),
        library_(std::make_shared<const redis::library>(
            redis::library{renamed(changed(made_->attempt.functions()->text))})),
        attempt(changed(made_->attempt)),
        leave(changed(made_->leave)),
        renew(changed(made_->renew)),
        change(changed(made_->change)),
        transfer(changed(made_->transfer)),
        revoke(changed(made_->revoke)),
        inspect(changed(made_->inspect)),
        batch(changed(*made_->attempt.batched().by)) {}

 private:
  static void put(std::string& text, const std::string& name, duration value) {
    const std::string start = "local " + name + " = ";
    const auto at = text.find(start);
    if (at == std::string::npos) throw std::logic_error("no " + name);
    const auto end = text.find('\n', at);
    text.replace(at, end - at, start + std::to_string(value / std::chrono::microseconds(1)));
  }
  [[nodiscard]] std::string changed(std::string text) const {
    put(text, "WAITER_LEASE", how_.waiter_lease);
    put(text, "TOMBSTONE_EXTRA", how_.tombstone_extra);
    return text;
  }
  // Libraries with other time limits are on the same server.
  [[nodiscard]] std::string renamed(std::string text) const {
    const std::string_view old = "holdfast_7";
    const std::string mine = "times_" + std::to_string(how_.waiter_lease / 1us) + "_" +
                             std::to_string(how_.tombstone_extra / 1us);
    for (auto at = text.find(old); at != std::string::npos; at = text.find(old, at)) {
      text.replace(at, old.size(), mine);
    }
    return text;
  }
  [[nodiscard]] redis::script changed(const redis::script& from) const {
    return from.with_text(changed(from.text()), {library_, renamed(from.function_name())});
  }

  const times how_;
  const std::shared_ptr<const redis::scripts> made_;
  const std::shared_ptr<const redis::library> library_;

 public:
  const redis::script attempt, leave, renew, change, transfer, revoke, inspect, batch;
};

// The script with a server that fails once. As the server does, call() raises (before
// Redis 7 a text) and pcall() answers. `as_function`: it behaves as a function does.
inline redis::script failing(const redis::script& what, std::size_t nth, const std::string& how,
                             bool as_function = false) {
  const std::string number = std::to_string(nth);
  return what.with_text(
      "local real, made = redis, 0\n"
      "local function fails() made = made + 1 return made == " +
      number + " end\n" +
      "local redis = {\n"
      "  sha1hex = real.sha1hex,\n"
      "  register_function = " +
      (as_function ? "function() end" : "nil") +
      ",\n"
      "  call = function(...) if fails() then\n"
      "      error(real.REDIS_VERSION_NUM and {err = '" +
      how + " injected'} or '" + how +
      " injected') end\n"
      "    return real.call(...) end,\n"
      "  pcall = function(...) if fails() then return {err = '" +
      how +
      " injected'} end\n"
      "    return real.pcall(...) end,\n"
      "}\n"
      "local function whole()\n" +
      what.text() +
      "\nend\n"
      "local answer = whole()\n"
      "if made < " +
      number + " then return {ok = 'no such call'} end\nreturn answer\n");
}

// The answer of a failing script that finished, with fewer calls than were to succeed.
inline bool none_failed(const redis::reply& answer) { return answer.text == "no such call"; }

// A client that calls scripts and waits for their answers.
class script_caller {
 public:
  script_caller(std::uint16_t port, const short_scripts::times& how, bool functions = true)
      : reactor_(spi::make_reactor()),
        node_(std::make_shared<redis::node>(net::make_network(reactor_),
                                            wrapped_as(functions, options_for(port)))),
        scripts_(how) {}
  ~script_caller() { node_->close(); }
  script_caller(const script_caller&) = delete;
  script_caller& operator=(const script_caller&) = delete;

  [[nodiscard]] const short_scripts& scripts() const noexcept { return scripts_; }
  redis::node& node() { return *node_; }

  redis::reply run(const redis::script& what, const std::vector<std::string>& keys,
                   const std::vector<std::string>& arguments) {
    const awaited answer(reactor_);
    const std::vector<std::string_view> key_words(keys.begin(), keys.end());
    const std::vector<std::string_view> words(arguments.begin(), arguments.end());
    node_->run(0, redis::make_call(what, what.call(key_words, words), clock::now() + ample,
                                   answer.completion()));
    if (!answer.get()) throw std::runtime_error(answer.get().error().message());
    return *answer.get();
  }

  redis::reply send(const command& what) {
    const awaited answer(reactor_);
    node_->send(what, clock::now() + ample, answer.completion());
    if (!answer.get()) throw std::runtime_error(answer.get().error().message());
    return *answer.get();
  }

  // Subscribes the process to its channel of the partition; confirmed when it returns.
  std::unique_ptr<spi::subscription> listen(redis::partition which, const std::string& process,
                                            const std::shared_ptr<message_listener>& listener) {
    auto made = node_->listen(
        {redis::channel_id::flavour::classic, redis::process_channel(which, process)}, listener);
    if (!made) throw std::runtime_error(made.error().message());
    if (!eventually([&] { return listener->is_confirmed(); })) throw std::runtime_error("silent");
    return std::move(*made);
  }
  // True once the server counts nobody there.
  bool deaf(redis::partition which, const std::string& process) {
    const std::string channel = redis::process_channel(which, process);
    return eventually([&] {
      return send(command{"PUBSUB", "NUMSUB", channel}).elements.at(1).integer == 0;
    });
  }

 private:
  static redis::server_options wrapped_as(bool functions, redis::server_options options) {
    options.functions = functions;
    return options;
  }

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<redis::node> node_;
  const short_scripts scripts_;
};

// One server for all tests of this program that leave nothing on it but keys; emptied for each.
inline const redis_server& emptied_redis() {
  static const redis_server server;
  server.tell({"FLUSHALL"});
  return server;
}

// A server, one name on it, and processes that are notified of it.
struct one_name {
  const redis_server& server = emptied_redis();
  script_caller caller{server.port(), {}};
  const redis::place place = redis::place_of({"", "stock"});
  const std::vector<std::string> keys{place.state, redis::observed_key(place.partition)};
  std::vector<std::shared_ptr<message_listener>> listeners;  // by process
  std::vector<std::unique_ptr<spi::subscription>> subscriptions;

  void listen(std::uint64_t processes) {
    for (std::uint64_t who = 0; who < processes; ++who) {
      listeners.push_back(std::make_shared<message_listener>());
      subscriptions.push_back(caller.listen(place.partition, process_name(who), listeners.back()));
    }
  }
};

}  // namespace holdfast::test
