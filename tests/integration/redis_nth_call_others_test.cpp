// Like redis_nth_call, for the scripts that do not handle our queue: latches, and the foreign
// dialects.
#include "redis_scripts_harness.hpp"
#include "stores/redis/foreign/foreign_store.hpp"

namespace holdfast::test {
namespace {

class redis_nth_call_others : public testing::TestWithParam<const char*> {
 protected:
  script_caller caller{emptied_redis().port(), {}};
  const std::shared_ptr<const redis::scripts> all =
      redis::scripts::make(redis::channel_id::flavour::classic);

  // Fails every call in turn: each time `fresh`, then the verb with the failure, then `check`.
  template <class Fresh, class Check>
  void sweep(const redis::script& what, const std::vector<std::string>& keys,
             const std::vector<std::string>& arguments, const Fresh& fresh, const Check& check) {
    int met = 0;
    constexpr std::size_t calls_at_most = 40;
    for (std::size_t nth = 1; nth <= calls_at_most; ++nth) {
      SCOPED_TRACE("call " + std::to_string(nth));
      caller.send(command{"FLUSHALL"});
      fresh();
      const redis::reply broken = caller.run(failing(what, nth, GetParam()), keys, arguments);
      if (broken.is_error()) {
        ++met;
        EXPECT_NE(broken.text.find("injected"), std::string::npos) << broken.text;
      }
      check();
      if (none_failed(broken)) {
        EXPECT_GT(met, 1);
        return;
      }
    }
    FAIL() << "a script with more than 40 calls";
  }
};

std::string name_of(const testing::TestParamInfo<const char*>& info) { return info.param; }

class redis_nth_call_latch : public redis_nth_call_others {
 protected:
  const redis::place place = redis::place_of({"", "start"});
  const std::vector<std::string> keys{place.state, redis::observed_key(place.partition)};

  static std::vector<std::string> words(const std::string& verb, const std::string& count,
                                        const std::string& id) {
    return {verb, count, id, "60000000", ""};
  }
  std::int64_t ask(const std::string& verb, const std::string& count, const std::string& id) {
    return caller.run(all->latch, keys, words(verb, count, id)).elements.at(2).integer;
  }
  std::int64_t count() { return ask("r", "0", ""); }
};
INSTANTIATE_TEST_SUITE_P(with, redis_nth_call_latch, testing::Values("OOM", "NOPERM", "WRONGTYPE"),
                         name_of);

TEST_P(redis_nth_call_latch, of_a_count_down_that_counts_once) {
  // Broken: a count-down that failed half-way would count twice when repeated, or never.
  sweep(
      all->latch, keys, words("d", "1", "mine"), [&] { EXPECT_EQ(ask("s", "3", "set"), 3); },
      [&] {
        EXPECT_THAT(count(), testing::AnyOf(2, 3));
        EXPECT_EQ(ask("d", "1", "mine"), 2);
        EXPECT_EQ(count(), 2);
        EXPECT_EQ(ask("d", "1", "other"), 1);
      });
}

TEST_P(redis_nth_call_latch, of_setting_it) {
  // Broken: a latch that is set and is not, or cannot be set any more.
  sweep(
      all->latch, keys, words("s", "3", "set"), [] {},
      [&] {
        EXPECT_THAT(count(), testing::AnyOf(-1, 3));
        EXPECT_EQ(ask("s", "3", "set"), 3);
        EXPECT_EQ(ask("d", "1", "mine"), 2);
      });
}

// The foreign dialects: keys, arguments and answers of their scripts are the same.
class redis_nth_call_foreign : public redis_nth_call_others {
 protected:
  struct form {
    const char* name;
    const redis::foreign_form* scripts;
    std::vector<std::string> beside;
  };
  const std::string tomb_key = "holdfast:{0}:t:me";
  const form* used = nullptr;

  template <class Test>
  void in_every_format(const Test& test) {
    const redis::foreign_form* const both = redis::redisson_format.read_write;
    const form forms[] = {
        {"simple", &redis::simple_format.lock, {}},
        {"python-redis-lock", &redis::python_redis_lock_format.lock, {"signal"}},
        {"redisson", &redis::redisson_format.lock, {}},
        {"redisson, fair", redis::redisson_format.fair, {}},
        {"redisson, permits", redis::redisson_format.permits, {}},
        {"redisson, writer", both, {}},
        {"redisson, reader", both, {"{plain}:me:rwlock_timeout:1"}},
    };
    for (const form& each : forms) {
      SCOPED_TRACE(each.name);
      used = &each;
      test();
    }
  }
  const redis::claim_scripts& calls() { return (*all).*used->scripts->calls; }
  const redis::script& taking_script() { return calls().attempt; }

  [[nodiscard]] std::vector<std::string> keys(std::vector<std::string> common) const {
    common.insert(common.end(), used->beside.begin(), used->beside.end());
    return common;
  }
  [[nodiscard]] std::vector<std::string> taking() const {
    return keys({"plain", "fence", tomb_key});
  }
  [[nodiscard]] std::vector<std::string> leaving() const { return keys({"plain", tomb_key}); }
  [[nodiscard]] std::vector<std::string> renewing() const { return keys({"plain", "fence"}); }

  [[nodiscard]] std::vector<std::string> taking_words(const std::string& who) const {
    return {who, "60000", "0", "1", "", "channel", in_line(), "1", "1", "1"};
  }
  [[nodiscard]] std::vector<std::string> leaving_words(const std::string& who) const {
    return {who, "0", in_line(), "channel", "1"};
  }
  static std::vector<std::string> renewing_words() {
    return {"me", "60000", "1", "1", "", "channel", "1"};
  }
  [[nodiscard]] std::string in_line() const { return used->scripts->in_line ? "fair" : ""; }

  redis::reply attempt(const std::string& who) {
    return caller.run(taking_script(), taking(), taking_words(who));
  }
  std::int64_t leave(const std::string& who) {
    return caller.run(calls().leave, leaving(), leaving_words(who)).elements.at(0).integer;
  }
  std::string holder() {
    if (used->scripts == redis::redisson_format.permits) {
      const redis::reply all = caller.send(command{"ZRANGE", "{plain}:timeout", "0", "-1"});
      const bool counted = caller.send(command{"GET", "plain"}).text == "0";
      EXPECT_EQ(counted, !all.elements.empty());
      return all.elements.empty() ? "" : all.elements[0].text;
    }
    if (caller.send(command{"TYPE", "plain"}).text == "string") {
      return caller.send(command{"GET", "plain"}).text;
    }
    for (const redis::reply& each : caller.send(command{"HKEYS", "plain"}).elements) {
      if (each.text != "mode") return each.text;
    }
    return {};
  }
  bool ends() {
    if (used->scripts == redis::redisson_format.permits) return true;  // each has a time
    return caller.send(command{"PTTL", "plain"}).integer != -1;
  }
};
INSTANTIATE_TEST_SUITE_P(with, redis_nth_call_foreign,
                         testing::Values("OOM", "NOPERM", "WRONGTYPE"), name_of);

TEST_P(redis_nth_call_foreign, of_an_attempt) {
  // Broken: a lock that is held unknowingly, or forever, or fences that decrease.
  in_every_format([&] {
    std::int64_t last = 0;
    sweep(
        taking_script(), taking(), taking_words("me"), [] {},
        [&] {
          EXPECT_THAT(holder(), testing::AnyOf("", "me"));
          EXPECT_TRUE(ends());
          const redis::reply granted = attempt("me");
          EXPECT_EQ(granted.elements.at(0).integer, 1);
          EXPECT_GT(granted.elements.at(2).integer, last);
          last = granted.elements.at(2).integer;
          EXPECT_EQ(leave("me"), 1);
          EXPECT_EQ(holder(), "");
        });
  });
}

TEST_P(redis_nth_call_foreign, of_a_release) {
  // Broken: a release that failed would free another's lock, or could not be repeated.
  in_every_format([&] {
    sweep(
        calls().leave, leaving(), leaving_words("me"), [&] { attempt("me"); },
        [&] {
          EXPECT_THAT(holder(), testing::AnyOf("", "me"));
          leave("me");
          EXPECT_EQ(holder(), "");
          EXPECT_EQ(attempt("you").elements.at(0).integer, 1);
          EXPECT_EQ(leave("me"), 2);
          EXPECT_EQ(holder(), "you");
        });
  });
}

TEST_P(redis_nth_call_foreign, of_a_renewal) {
  // Broken: a renewal that failed would end the hold, or change its fence.
  in_every_format([&] {
    std::int64_t fence = 0;
    sweep(
        calls().renew, renewing(), renewing_words(),
        [&] { fence = attempt("me").elements.at(2).integer; },
        [&] {
          EXPECT_EQ(holder(), "me");
          const redis::reply renewed = caller.run(calls().renew, renewing(), renewing_words());
          EXPECT_EQ(renewed.elements.at(1).integer, 0);
          const bool permits =
              used->scripts == redis::redisson_format.permits;  // have one from the grant
          EXPECT_EQ(renewed.elements.at(2).integer, permits ? 0 : fence);
        });
  });
}

// Redisson's latch.
class redis_nth_call_foreign_latch : public redis_nth_call_others {
 protected:
  const std::vector<std::string> keys{"start", "ids", "before"};
  static std::vector<std::string> words(const std::string& count, const std::string& id) {
    return {count, id, "60000", "channel"};
  }
  std::int64_t ask(const redis::script& what, const std::string& count, const std::string& id) {
    return caller.run(what, keys, words(count, id)).elements.at(2).integer;
  }
  std::int64_t count() { return ask(all->redisson_latch_count, "0", ""); }
};
INSTANTIATE_TEST_SUITE_P(with, redis_nth_call_foreign_latch,
                         testing::Values("OOM", "NOPERM", "WRONGTYPE"), name_of);

TEST_P(redis_nth_call_foreign_latch, of_a_count_down_that_counts_once) {
  // Broken: a count-down that failed half-way would count twice when repeated, or never.
  sweep(
      all->redisson_latch_down, keys, words("1", "mine"),
      [&] { EXPECT_EQ(ask(all->redisson_latch_set, "2", "set"), 2); },
      [&] {
        EXPECT_THAT(count(), testing::AnyOf(1, 2));
        EXPECT_EQ(ask(all->redisson_latch_down, "1", "mine"), 1);
        EXPECT_EQ(count(), 1);
        EXPECT_EQ(ask(all->redisson_latch_down, "1", "other"), 0);
        EXPECT_EQ(caller.send(command{"EXISTS", "start"}).integer, 0);
      });
}

TEST_P(redis_nth_call_foreign_latch, of_setting_it) {
  // Broken: a latch that is set and is not, or cannot be set any more.
  sweep(
      all->redisson_latch_set, keys, words("3", "set"), [] {},
      [&] {
        EXPECT_THAT(count(), testing::AnyOf(0, 3));
        EXPECT_EQ(ask(all->redisson_latch_set, "3", "set"), 3);
        EXPECT_EQ(ask(all->redisson_latch_down, "1", "mine"), 2);
      });
}

// The script on a server that answers `with` to one command.
redis::script answering(const redis::script& what, const std::string& to, int with) {
  return what.with_text(
      "local real = redis\nlocal redis = {pcall = real.pcall, call = function(c, ...) "
      "if c == '" +
      to + "' then return " + std::to_string(with) + " end return real.call(c, ...) end}\n" +
      what.text());
}

TEST(redis_foreign_scripts,
     a_lease_with_less_than_a_millisecond_left_is_asked_for_in_a_millisecond) {
  // Broken: a waiter sleeps for a second more than the lock is held.
  const redis_server server;
  script_caller caller{server.port(), {}};
  const auto all = redis::scripts::make(redis::channel_id::flavour::classic);
  caller.send(command{"SET", "text", "theirs", "PX", "60000"});
  caller.send(command{"HSET", "hash", "theirs", "1"});
  caller.send(command{"HSET", "both", "mode", "write", "theirs:write", "1"});
  const auto asked = [&](const redis::script& what, const std::string& name, int left) {
    return caller
        .run(answering(what, "PTTL", left), {name, "fence", "tomb"}, {"me", "60000", "0", "1"})
        .elements.at(3)
        .integer;
  };
  for (const auto& [what, name] :
       {std::pair{&all->simple.attempt, "text"}, std::pair{&all->redisson.attempt, "hash"},
        std::pair{&all->redisson_read_write.attempt, "both"}}) {
    EXPECT_EQ(asked(*what, name, 0), 1'000) << name;
    EXPECT_EQ(asked(*what, name, 7), 7'000) << name;
    EXPECT_EQ(asked(*what, name, -1), 1'000'000) << name;  // it has no end
  }
}

}  // namespace
}  // namespace holdfast::test
