// A queue of the embedded store: the first few waiters are in the lock's own row and the others in
// rows of their own, which is invisible from outside.
#include "integration/sqlite_harness.hpp"
#include "stores/sqlite/ledger.hpp"
#include "support/eventually.hpp"
#include "support/forked_process.hpp"
#include "support/telephone.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <future>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

struct waiter {
  const embedded_client* client = nullptr;
  std::shared_ptr<spi::claim> claim;
  std::shared_ptr<noting_wakeup> wakeup = std::make_shared<noting_wakeup>();
};

// More than twice as many as fit into the lock's own row, with payloads of every size.
constexpr std::size_t length = 3 * sqlite::ledger_limits::line_limit;

waiter queue(const embedded_client& client, std::size_t number) {
  waiter made{&client, client.fair_claim()};
  made.claim->payload = std::string(number % 3 == 2 ? 256 : number, 'p');
  EXPECT_TRUE(queued(client.attempt(made.claim, made.wakeup))) << number;
  return made;
}

std::vector<std::string> ids_of(const std::vector<waiter>& waiters) {
  std::vector<std::string> ids;
  for (const waiter& each : waiters) ids.push_back(spi::public_id(each.claim->id));
  return ids;
}

std::vector<std::string> line_seen_by(const embedded_client& client) {
  std::vector<std::string> ids;
  for (const auto& each : client.inspect().waiters) ids.push_back(each.claim);
  return ids;
}

TEST(sqlite_line, is_served_in_the_order_of_arrival_even_if_some_leave) {
  // Broken: a waiter is passed over, served twice or never, when the queue moves up.
  const embedded_file file;
  const std::array<embedded_client, 3> clients{
      embedded_client(file.path()), embedded_client(file.path()), embedded_client(file.path())};
  waiter holder{&clients[0], clients[0].claim()};
  ASSERT_TRUE(granted(clients[0].attempt(holder.claim, holder.wakeup)));
  std::vector<waiter> line;
  for (std::size_t i = 0; i < length; ++i) line.push_back(queue(clients.at(i % 3), i));
  EXPECT_EQ(line_seen_by(clients[1]), ids_of(line));
  for (const std::size_t leaves : {length - 1, length / 2, std::size_t{2}, std::size_t{0}}) {
    const auto at = line.begin() + static_cast<std::ptrdiff_t>(leaves);
    EXPECT_EQ(at->client->leave(at->claim).value(), departure::was_waiting);
    line.erase(at);
    EXPECT_EQ(line_seen_by(clients[2]), ids_of(line));
  }
  std::uint64_t last = 0;
  std::size_t newcomers = length;
  while (!line.empty()) {
    ASSERT_EQ(holder.client->leave(holder.claim).value(), departure::was_holder);
    holder = line.front();
    line.erase(line.begin());
    ASSERT_TRUE(holder.wakeup->is_granted());
    EXPECT_GT(holder.wakeup->grant()->fence.value(), last);
    last = holder.wakeup->grant()->fence.value();
    EXPECT_EQ(holder.client->renew(holder.claim).state, hold_state::renewed);
    EXPECT_EQ(line_seen_by(clients[0]), ids_of(line));
    // They go behind all of the others.
    if (newcomers > 0 && line.size() % 2 == 0) {
      line.push_back(queue(*holder.client, --newcomers));
    }
  }
}

TEST(sqlite_line, loses_a_dead_clients_places_wherever_they_are) {
  // Broken: a process that was killed blocks those behind it, or takes them with it.
  const embedded_file file;
  const telephone phone;
  forked_process other([&] {
    const embedded_client its(file.path());
    std::vector<waiter> waiters;
    for (std::size_t i = 0; i < length && phone.hear_back() == 'n'; ++i) {
      waiters.push_back(queue(its, i));
      phone.say_back('q');
    }
    for (;;) ::pause();
  });
  const embedded_client client(file.path());
  const auto holder = client.claim();
  ASSERT_TRUE(granted(client.attempt(holder)));
  std::vector<waiter> line;
  for (std::size_t i = 0; i < length; ++i) {
    if (i % 3 == 0) line.push_back(queue(client, i));
    phone.say('n');
    ASSERT_EQ(phone.hear(), 'q');
  }
  other.kill();
  const embedded_client purges(file.path());
  EXPECT_EQ(line_seen_by(purges), ids_of(line));
  spi::claim_ptr held = holder;
  for (const waiter& next : line) {
    ASSERT_EQ(client.leave(held).value(), departure::was_holder);
    ASSERT_TRUE(next.wakeup->is_granted());
    held = next.claim;
  }
}

// Its claim is released when another one is granted.
class releasing_wakeup final : public noting_wakeup {
 public:
  releasing_wakeup(const embedded_client& of, spi::claim_ptr claim)
      : of_(of), claim_(std::move(claim)) {}
  void notify(std::optional<spi::granted> grant) noexcept override {
    noting_wakeup::notify(grant);
    if (grant) static_cast<void>(of_.leave(claim_));
  }

 private:
  const embedded_client& of_;
  const spi::claim_ptr claim_;
};

TEST(sqlite_line, a_claim_that_leaves_during_a_renewal_of_many_stays_away) {
  // Broken: the renewal asks for it again from the start, and it holds until its process ends.
  const embedded_file file;
  const embedded_client client(file.path());
  const embedded_client other(file.path());
  const auto shared = [&client] {
    auto made = client.claim("first");
    made->mode = spi::mode::shared;
    return made;
  };
  auto soon_over = client.claim("first");
  soon_over->renewed = false;
  soon_over->ttl = 100ms;
  const auto holder = other.claim("second");
  const auto leaves = client.fair_claim("second");
  ASSERT_TRUE(granted(other.attempt(holder)));
  ASSERT_TRUE(queued(client.attempt(leaves)));
  ASSERT_TRUE(granted(client.attempt(soon_over)));
  const auto asks = shared();
  const auto wakeup = std::make_shared<releasing_wakeup>(client, leaves);
  ASSERT_TRUE(queued(client.attempt(asks)));
  ASSERT_TRUE(queued(client.attempt(shared(), wakeup)));
  ASSERT_TRUE(eventually([&] { return client.inspect("first").holders.empty(); }));
  std::promise<result<std::vector<spi::renewal>>> said;
  client.store().renew({asks, leaves}, embedded_client::within(generous),
                       [&](auto answer) { said.set_value(std::move(answer)); });
  const auto answers = said.get_future().get();
  ASSERT_TRUE(answers);
  EXPECT_EQ(answers->front().state, hold_state::renewed);
  EXPECT_EQ(answers->back().state, hold_state::lost);
  EXPECT_TRUE(wakeup->is_granted());
  EXPECT_TRUE(client.inspect("second").waiters.empty());
}

}  // namespace
}  // namespace holdfast::test
