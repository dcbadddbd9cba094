// The client of etcd against servers that say goodbye, say nothing, talk nonsense, or are cut off
// from the others.
#ifdef HOLDFAST_WITH_ETCD
#include "net/connector.hpp"
#include "stores/etcd/lease_keeper.hpp"
#include "stores/etcd/messages.hpp"
#include "stores/etcd/watch_hub.hpp"
#include "support/eventually.hpp"
#include "support/fake_etcd.hpp"
#include "support/rounds.hpp"

#include <holdfast/spi/reactor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using etcd::channel;
using etcd::method;
using etcd::proto_writer;
using request = fake_etcd::request;

bool asks_for(const request& what, method which) { return what.path == etcd::path_of(which); }

std::string header_body(std::uint64_t term = 2) {
  std::string header;
  proto_writer(header).number(2, 7).number(3, 10).number(4, term);
  std::string body;
  proto_writer(body).message(1, header);
  return body;
}

// The id with which a watch is requested; 0: it is a cancellation.
std::int64_t wire_in(const std::string& body) {
  etcd::proto_reader outer(body);
  etcd::proto_field one;
  if (!outer.next(one) || one.number != 1) return 0;
  etcd::proto_reader inner(one.bytes);
  for (etcd::proto_field each; inner.next(each);) {
    if (each.number == 7) return each.as_signed();
  }
  return 0;
}

std::string watch_said(std::int64_t wire, bool created, bool cancelled, std::int64_t compacted = 0,
                       const std::string& reason = {}) {
  std::string body = header_body();
  proto_writer(body)
      .signed_number(2, wire)
      .flag(3, created)
      .flag(4, cancelled)
      .signed_number(5, compacted)
      .bytes(6, reason);
  return body;
}

etcd::flow ask_into(std::shared_ptr<channel> whom, etcd::call what, time_point until,
                    std::shared_ptr<std::promise<result<etcd::reply>>> into) {
  std::vector<etcd::call> batch;
  batch.push_back(std::move(what));
  etcd::replies answers = co_await etcd::asking(whom, std::move(batch), until);
  into->set_value(std::move(answers.front()));
}

class etcd_channel : public testing::Test {
 protected:
  ~etcd_channel() override {
    for (const auto& each : hubs_) each->close();
    for (const auto& each : made_) each->close();
  }

  std::shared_ptr<channel> connect(const std::vector<std::uint16_t>& ports,
                                   const std::string& user = {}) {
    etcd::server_options options;
    for (const auto each : ports) options.servers.push_back({"127.0.0.1", each, {}});
    options.stall_limit = 700ms;
    options.user = user;
    made_.push_back(channel::make(net_, std::make_shared<const etcd::server_options>(options)));
    return made_.back();
  }
  std::shared_ptr<etcd::watch_hub> watch_by(const std::shared_ptr<channel>& way) {
    hubs_.push_back(std::make_shared<etcd::watch_hub>(reactor_, way, net::backoff_limits{}));
    return hubs_.back();
  }
  // Counts how often its watch was established.
  etcd::watch_hub::watch_id watch(const std::shared_ptr<etcd::watch_hub>& hub,
                                  std::atomic<int>& created) {
    return hub->add({"a"}, etcd::watch_filter::none, [&created](const etcd::watch_news& news) {
      if (news.created) ++created;
    });
  }
  std::future<result<etcd::reply>> ask(const std::shared_ptr<channel>& whom, method what,
                                       duration limit = patience) {
    auto into = std::make_shared<std::promise<result<etcd::reply>>>();
    ask_into(whom, {what, {}}, reactor_->now() + limit, into);
    return into->get_future();
  }

  const std::shared_ptr<spi::reactor> reactor_ = spi::make_reactor();
  const net::network net_ = net::make_network(reactor_);
  std::vector<std::shared_ptr<channel>> made_;
  std::vector<std::shared_ptr<etcd::watch_hub>> hubs_;
};

TEST_F(etcd_channel, a_connection_that_was_closed_while_sending_is_replaced) {
  // Broken: a server that shuts down gracefully fails calls that were never sent.
  fake_etcd server([](fake_etcd& self, const request& what) {
    if (asks_for(what, method::watch)) {
      self.say(what, watch_said(wire_in(what.body), true, false));
      if (what.connection == 1) self.say_goodbye(what);
      return;
    }
    self.answer(what, header_body());
  });
  const auto way = connect({server.port()});
  std::atomic<int> created{0};
  watch(watch_by(way), created);
  ASSERT_TRUE(eventually([&] { return created == 1; }));
  const auto answer = ask(way, method::status).get();
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(server.connections(), 2);
  EXPECT_TRUE(eventually([&] { return created == 2; }));
}

TEST_F(etcd_channel, a_stream_that_a_leaving_connection_refuses_begins_on_the_next) {
  // Broken: its message is lost, or the program crashes.
  fake_etcd server([](fake_etcd& self, const request& what) {
    if (asks_for(what, method::status)) {  // stays open, so that the connection does
      if (what.connection == 1) return self.say_goodbye(what);
      return self.answer(what, header_body());
    }
    self.say(what, watch_said(wire_in(what.body), true, false));
  });
  const auto way = connect({server.port()});
  auto first = ask(way, method::status);
  ASSERT_TRUE(eventually([&] { return server.connections() == 1; }));
  ASSERT_TRUE(first.wait_for(100ms) == std::future_status::timeout);
  std::atomic<int> created{0};
  watch(watch_by(way), created);
  EXPECT_FALSE(first.get());
  EXPECT_TRUE(eventually([&] { return created >= 1; }));
  EXPECT_GE(server.connections(), 2);
}

TEST_F(etcd_channel, a_member_without_a_leader_is_left) {
  // Broken: a client connected to a member that is cut off stays there.
  std::atomic<int> cut{-1};
  const auto script = [&cut](int number) {
    return [&cut, number](fake_etcd& self, const request& what) {
      if (cut == number) return self.end(what, 14, "etcdserver: no leader");
      if (!asks_for(what, method::watch)) return self.answer(what, header_body());
      self.say(what, watch_said(wire_in(what.body), true, false));
    };
  };
  fake_etcd left(script(0));
  fake_etcd right(script(1));
  const auto way = connect({left.port(), right.port()});
  ASSERT_TRUE(ask(way, method::status).get());
  cut = left.connections() == 1 ? 0 : 1;
  const auto refused = ask(way, method::status).get();
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->ok());
  const auto answer = ask(way, method::status).get();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->ok()) << answer->status.text;

  // The same for watches: their stream is ended by such a member.
  cut = 1 - cut;
  std::atomic<int> created{0};
  watch(watch_by(way), created);
  EXPECT_TRUE(eventually([&] { return created == 1; }));
}

TEST_F(etcd_channel, a_token_from_before_the_rights_were_changed_is_renewed) {
  // Broken: after a change of permissions every call fails until the connection breaks.
  std::atomic<int> logins{0};
  fake_etcd server([&](fake_etcd& self, const request& what) {
    if (asks_for(what, method::authenticate)) {
      std::string body = header_body();
      proto_writer(body).bytes(2, "token-" + std::to_string(++logins));
      return self.answer(what, body);
    }
    if (what.token == "token-1") {
      return self.end(what, 3, "etcdserver: revision of auth store is old");
    }
    self.answer(what, header_body());
  });
  const auto answer = ask(connect({server.port()}, "shop"), method::status).get();
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_TRUE(answer->ok()) << answer->status.text;
  EXPECT_EQ(logins, 2);
}

TEST_F(etcd_channel, a_compacted_watch_begins_again_by_another_number) {
  // Broken: the server still knows the id and refuses it, and the watch is never established again.
  std::set<std::int64_t> known;
  fake_etcd server([&](fake_etcd& self, const request& what) {
    if (!asks_for(what, method::watch)) return self.answer(what, header_body());
    const std::int64_t wire = wire_in(what.body);
    if (wire == 0) return;
    if (!known.insert(wire).second) return self.say(what, watch_said(-1, true, true));
    self.say(what, watch_said(wire, true, false));
    if (known.size() == 1) self.say(what, watch_said(wire, false, true, 5));
  });
  std::atomic<int> created{0};
  watch(watch_by(connect({server.port()})), created);
  EXPECT_TRUE(eventually([&] { return created == 2; }));
}

TEST_F(etcd_channel, a_watch_that_an_expired_token_is_denied_comes_with_the_next_token) {
  // Broken: after an idle period every new watch of the client is refused permanently.
  std::atomic<int> logins{0};
  std::atomic<bool> expired{false};
  fake_etcd server([&](fake_etcd& self, const request& what) {
    if (asks_for(what, method::authenticate)) {
      std::string body = header_body();
      proto_writer(body).bytes(2, "token-" + std::to_string(++logins));
      return self.answer(what, body);
    }
    if (!asks_for(what, method::watch)) return self.answer(what, header_body());
    const bool denied = expired && what.token == "token-1";
    self.say(what, watch_said(denied ? -1 : wire_in(what.body), true, denied, 0,
                              denied ? "etcdserver: permission denied" : ""));
  });
  const auto hub = watch_by(connect({server.port()}, "shop"));
  std::atomic<int> first{0};
  watch(hub, first);
  ASSERT_TRUE(eventually([&] { return first == 1; }));
  expired = true;
  std::atomic<int> second{0};
  watch(hub, second);
  EXPECT_TRUE(eventually([&] { return second == 1 && first == 2; }));
}

TEST_F(etcd_channel, an_event_that_cannot_be_read_is_not_passed_over) {
  // Broken: its event is missed, and a waiter never learns of it.
  fake_etcd server([](fake_etcd& self, const request& what) {
    if (!asks_for(what, method::watch)) return self.answer(what, header_body());
    const std::int64_t wire = wire_in(what.body);
    if (wire == 0) return;
    self.say(what, watch_said(wire, true, false));
    if (wire == 1) self.say(what, "\x0a\xff");
  });
  std::atomic<int> created{0};
  watch(watch_by(connect({server.port()})), created);
  EXPECT_TRUE(eventually([&] { return created == 2; }));
}

TEST_F(etcd_channel, a_watch_on_a_member_that_falls_silent_moves_on) {
  // Broken: the watch waits forever for a member that has died.
  fake_etcd server([](fake_etcd& self, const request& what) {
    if (asks_for(what, method::watch)) {
      return self.say(what, watch_said(wire_in(what.body), true, false));
    }
    if (what.connection > 1) self.answer(what, header_body());
  });
  std::atomic<int> created{0};
  watch(watch_by(connect({server.port()})), created);
  EXPECT_TRUE(eventually([&] { return created == 2; }));
}

TEST_F(etcd_channel, nonsense_is_an_error_and_the_next_call_is_answered) {
  // Broken: a broken server exhausts memory, causes a crash, or is trusted.
  const std::vector<std::string> said{
      std::string("\0\xff\xff\xff\xff", 5),     // a message of 4 GiB
      std::string("\1\0\0\0\1x", 6),            // compressed
      std::string("\0\0\0\0\5ab", 7),           // cut short
      std::string("\0\0\0\0\0\0\0\0\0\0", 10),  // two answers to one call
      std::string(),                            // none
  };
  std::atomic<std::size_t> at{0};
  fake_etcd server([&](fake_etcd& self, const request& what) {
    if (!asks_for(what, method::range)) return self.answer(what, header_body());
    if (at == said.size()) {
      self.say(what, header_body());
      return self.end(what, 0, {}, std::string(60'000, 'x'));
    }
    self.say_raw(what, said[at]);
    self.end(what);
  });
  const auto way = connect({server.port()});
  for (; at <= said.size(); ++at) {
    EXPECT_FALSE(ask(way, method::range).get()) << at;
    EXPECT_TRUE(ask(way, method::status).get()) << at;
  }
}

etcd::flow lease_into(std::shared_ptr<etcd::lease_keeper> keeper, time_point until,
                      std::shared_ptr<std::promise<result<std::int64_t>>> into) {
  result<std::int64_t> answer = co_await etcd::lease_keeper::ready(keeper, until);
  into->set_value(std::move(answer));
}

TEST_F(etcd_channel, a_caller_with_time_gets_a_lease_though_another_had_none) {
  // Broken: one short call fails all callers that wait for the same lease.
  std::atomic<int> asked{0};
  fake_etcd server([&](fake_etcd& self, const request& what) {
    if (!asks_for(what, method::lease_grant)) return self.answer(what, header_body());
    if (++asked == 1) return;  // never answered
    std::string body = header_body();
    proto_writer(body).number(2, 77).number(3, 5);
    self.answer(what, body);
  });
  const auto keeper = std::make_shared<etcd::lease_keeper>(reactor_, connect({server.port()}), 5s,
                                                           std::weak_ptr<etcd::lease_user>());
  auto hurried = std::make_shared<std::promise<result<std::int64_t>>>();
  auto patient = std::make_shared<std::promise<result<std::int64_t>>>();
  lease_into(keeper, reactor_->now() + 300ms, hurried);
  lease_into(keeper, reactor_->now() + patience, patient);
  EXPECT_FALSE(hurried->get_future().get());
  const auto lease = patient->get_future().get();
  ASSERT_TRUE(lease) << lease.error().message();
  EXPECT_EQ(*lease, 77);
}

etcd::flow count_answer(std::shared_ptr<etcd::lease_keeper> keeper, time_point until,
                        std::shared_ptr<std::atomic<int>> left) {
  static_cast<void>(co_await etcd::lease_keeper::ready(keeper, until));
  --*left;
}

TEST_F(etcd_channel, callers_who_come_while_a_lease_is_granted_share_it) {
  // Broken: a caller who had seen that there was no lease requested a second one, and the claims on
  // the first could not be proven any more; or its place in memory was gone when it was used.
  constexpr int threads = 8;
  constexpr int calls = 20;
  std::atomic<int> asked{0};
  std::atomic<bool> answered{false};
  fake_etcd server([&](fake_etcd& self, const request& what) {
    if (!asks_for(what, method::lease_grant)) return self.answer(what, header_body());
    std::string body = header_body();
    proto_writer(body).number(2, static_cast<std::uint64_t>(++asked)).number(3, 5);
    self.answer(what, body);
    answered = true;
  });
  const auto way = connect({server.port()});
  const int last = rounds(300, 5'000);
  for (int round = 1; round <= last; ++round) {
    answered = false;
    const auto keeper =
        std::make_shared<etcd::lease_keeper>(reactor_, way, 5s, std::weak_ptr<etcd::lease_user>());
    const auto left = std::make_shared<std::atomic<int>>(threads * calls + 1);
    const time_point until = reactor_->now() + patience;
    {
      std::vector<std::jthread> callers;
      for (int i = 0; i < threads; ++i) {
        callers.emplace_back([&] {
          while (!answered) std::this_thread::yield();
          for (int call = 0; call < calls; ++call) count_answer(keeper, until, left);
        });
      }
      count_answer(keeper, until, left);
    }
    ASSERT_TRUE(eventually([&] { return *left == 0; }));
    ASSERT_EQ(asked, round);
  }
}

}  // namespace
}  // namespace holdfast::test
#endif
