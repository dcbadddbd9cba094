// As redis_nth_call, for the scripts that are not about claims in a line: latches, and the dialects
// of others.
#include "redis_scripts_harness.hpp"
#include "stores/redis/foreign_store.hpp"

namespace holdfast::test {
namespace {

class redis_nth_call_others : public testing::TestWithParam<const char*> {
 protected:
  // More than any of these scripts makes.
  static constexpr std::size_t calls = 40;

  redis_server server;
  script_caller caller{server.port(), {}};
  const std::shared_ptr<const redis::scripts> all =
      redis::scripts::make(redis::channel_id::flavour::classic);

  // Fails every call in turn: each time `fresh`, then the verb with the failure, then `check`.
  template <class Fresh, class Check>
  void sweep(const redis::script& what, const std::vector<std::string>& keys,
             const std::vector<std::string>& arguments, const Fresh& fresh, const Check& check) {
    int met = 0;
    for (std::size_t nth = 1; nth <= calls; ++nth) {
      SCOPED_TRACE("call " + std::to_string(nth));
      caller.send(command{"FLUSHALL"});
      fresh();
      if (caller.run(failing(what, nth, GetParam()), keys, arguments).is_error()) ++met;
      check();
    }
    EXPECT_GT(met, 1);
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

// dialect=simple and dialect=redisson: keys, arguments and answers of their scripts are the same.
class redis_nth_call_foreign : public redis_nth_call_others {
 protected:
  const std::string fence_key = "fence";
  const std::string tomb_key = "holdfast:{0}:t:me";
  const std::vector<std::string> taking{"plain", fence_key, tomb_key};
  const std::vector<std::string> leaving{"plain", tomb_key};
  const std::vector<std::string> renewing{"plain", fence_key};
  const redis::foreign_format* format = nullptr;

  template <class Test>
  void in_every_format(const Test& test) {
    for (const auto* each : {&redis::simple_format, &redis::redisson_format}) {
      SCOPED_TRACE(each->dialect);
      format = each;
      test();
    }
  }
  const redis::script& use(redis::script redis::scripts::*which) { return (*all).*which; }

  redis::reply attempt(const std::string& who) {
    return caller.run(use(format->attempt), taking, {who, "60000", "0", "1"});
  }
  std::int64_t leave(const std::string& who) {
    return caller.run(use(format->leave), leaving, {who, "0", "channel"}).elements.at(0).integer;
  }
  std::string holder() {
    if (format == &redis::simple_format) return caller.send(command{"GET", "plain"}).text;
    const redis::reply owners = caller.send(command{"HKEYS", "plain"});
    return owners.elements.empty() ? std::string() : owners.elements.at(0).text;
  }
  bool ends() { return caller.send(command{"PTTL", "plain"}).integer != -1; }
};
INSTANTIATE_TEST_SUITE_P(with, redis_nth_call_foreign,
                         testing::Values("OOM", "NOPERM", "WRONGTYPE"), name_of);

TEST_P(redis_nth_call_foreign, of_an_attempt) {
  // Broken: a lock that is held by nobody who knows it, or forever, or fences that go back.
  in_every_format([&] {
    std::int64_t last = 0;
    sweep(
        use(format->attempt), taking, {"me", "60000", "0", "1"}, [] {},
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
        use(format->leave), leaving, {"me", "0", "channel"}, [&] { attempt("me"); },
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
        use(format->renew), renewing, {"me", "60000", "1", "1"},
        [&] { fence = attempt("me").elements.at(2).integer; },
        [&] {
          EXPECT_EQ(holder(), "me");
          const redis::reply renewed =
              caller.run(use(format->renew), renewing, {"me", "60000", "1", "1"});
          EXPECT_EQ(renewed.elements.at(1).integer, 0);
          EXPECT_EQ(renewed.elements.at(2).integer, fence);
        });
  });
}

}  // namespace
}  // namespace holdfast::test
