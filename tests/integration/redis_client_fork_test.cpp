// After a fork the child's objects are inert: nothing is sent, and the parent's connections stay.
#ifdef HOLDFAST_WITH_REDIS

#include "redis_client_harness.hpp"
#include "stores/redis/client/subscriber.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis_server.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::test {
namespace {

class counter final : public redis::channel_listener {
 public:
  void confirmed() override { ++confirmations; }
  void interrupted(const error&) override { ++interruptions; }
  void message(std::string_view) override { ++messages; }

  std::atomic<int> confirmations{0};
  std::atomic<int> interruptions{0};
  std::atomic<int> messages{0};
};

// Runs the work in a forked child, and returns what it returned.
template <class Work>
int in_child(Work&& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(redis_fork, the_child_is_refused_and_the_parent_undisturbed) {
  // Broken (H84 a): a child would write into the parent's connection, or close it at its end.
  const redis_server server;
  fault_proxy proxy(server.port());
  auto client = std::make_unique<client_side>();
  auto line = client->connect(proxy.port());
  auto news = redis::subscriber::make(client->network(), options_for(proxy.port()));
  const auto who = std::make_shared<counter>();
  auto held = news->subscribe({redis::channel_id::flavour::classic, "news"}, who);
  ASSERT_EQ(words(client->call(line, {"PING"})), "PONG");
  ASSERT_TRUE(eventually([&] { return who->confirmations == 1; }));
  const std::size_t before = proxy.bytes(fault_proxy::way::to_server);

  EXPECT_EQ(
      in_child([&] {
        bool answered = false;
        line->send({"SET", "child", "1"}, clock::now() + ample, [&](result<redis::reply> answer) {
          answered = code(answer) == errc::cancelled;
        });
        const bool refused = !news->subscribe({redis::channel_id::flavour::classic, "more"}, who);
        // All of it is destroyed here too, as at the end of the child's main().
        held = nullptr;
        news->close();
        news = nullptr;
        line->close();
        line = nullptr;
        client = nullptr;
        return answered && refused ? 0 : 1;
      }),
      0);

  EXPECT_EQ(proxy.bytes(fault_proxy::way::to_server), before);
  EXPECT_EQ(words(client->call(line, {"EXISTS", "child"})), "0");
  server.cli({"PUBLISH", "news", "still here"});
  EXPECT_TRUE(eventually([&] { return who->messages == 1; }));
  EXPECT_EQ(who->interruptions, 0);
  EXPECT_EQ(proxy.accepted(), 2U);
  news->close();
}

TEST(redis_fork, a_child_that_lives_on_does_not_keep_the_parents_connection_open) {
  // Broken: the server would not learn of the parent's end, and count its subscription.
  const redis_server server;
  client_side client;
  auto options = options_for(server.port());
  options.name = "parent";
  const auto line = client.connect(options);
  ASSERT_EQ(words(client.call(line, {"PING"})), "PONG");
  int proxy[2];
  ASSERT_EQ(::pipe(proxy), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(proxy[1]);
    char end = 0;
    ::_exit(::read(proxy[0], &end, 1) == 0 ? 0 : 1);  // lives until the parent lets it go
  }
  ::close(proxy[0]);
  line->close();
  EXPECT_TRUE(eventually([&] {
    return server.cli({"CLIENT", "LIST"}).find("name=parent") == std::string::npos;
  }));
  ::close(proxy[1]);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace holdfast::test

#endif
