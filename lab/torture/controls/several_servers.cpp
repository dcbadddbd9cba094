// Broken locks on several Redis servers, and in a database.
#include "torture/controls/several_servers.hpp"

#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "torture/controls/stage.hpp"

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace holdfast::torture::controls {

namespace {

using std::chrono::milliseconds;
using members = std::initializer_list<std::size_t>;

}  // namespace

run_record replica_promoted_too_early(servers&) {
  stage scene("redis-sentinel");
  test::redis_server master;
  test::fault_proxy between(master.port());
  test::redis_server replica(
      {.tls = false, .arguments = {"--repl-diskless-sync-delay", "0"}, .admin = {}});
  replica.cli({"REPLICAOF", "127.0.0.1", std::to_string(between.port())});
  master.cli({"SET", "known", "1"});
  static_cast<void>(test::eventually([&] { return replica.cli({"GET", "known"}) == "1"; }));
  between.lose(test::fault_proxy::way::to_client);

  const std::int32_t first = scene.asks(0);
  plain_redis_lock(master, "lock").take("0", 30'000);
  scene.granted(first);
  master.kill();
  replica.cli({"REPLICAOF", "NO", "ONE"});
  const std::int32_t second = scene.asks(1);
  if (replica.cli({"SET", "lock", "1", "NX", "PX", "30000"}) == "OK") scene.granted(second);
  scene.releases(first);
  scene.releases(second);
  return scene.told();
}

run_record quorum_of_the_reachable(servers& all) {
  stage scene("redlock");
  for (const std::size_t each : {0U, 1U, 2U}) all.redis(each).cli({"DEL", "reachable"});
  // A majority of those that answered, not of those that exist.
  const auto take = [&](const std::string& owner, members reachable) {
    std::size_t votes = 0;
    for (const std::size_t each : reachable) {
      const bool yes =
          all.redis(each).cli({"SET", "reachable", owner, "NX", "PX", "30000"}) == "OK";
      votes += yes ? 1 : 0;
    }
    return votes > reachable.size() / 2;
  };
  const std::int32_t first = scene.asks(0);
  if (take("0", {0})) scene.granted(first);  // cut off from the other two
  const std::int32_t second = scene.asks(1);
  if (take("1", {1, 2})) scene.granted(second);  // they from the first
  scene.releases(first);
  scene.releases(second);
  return scene.told();
}

run_record fence_at_any_majority(servers& all) {
  stage scene("redlock");
  enum : std::size_t { a, b, c, d, e };
  for (std::size_t each = a; each <= e; ++each) {
    all.redis(each).cli({"DEL", "any"});
    all.redis(each).cli({"SET", "any:fence", each == c ? "100" : "0"});
  }
  // A grant from one member, with its next fence.
  const auto ask = [&](std::size_t member, const std::string& owner) -> std::uint64_t {
    if (all.redis(member).cli({"SET", "any", owner, "NX"}) != "OK") return 0;
    return std::stoull(all.redis(member).cli({"INCR", "any:fence"}));
  };
  const auto write_back = [&](members where, std::uint64_t fence) {
    for (const std::size_t each : where) {
      if (std::stoull(all.redis(each).cli({"GET", "any:fence"})) < fence) {
        all.redis(each).cli({"SET", "any:fence", std::to_string(fence)});
      }
    }
  };
  const std::int32_t second = scene.asks(1);
  std::uint64_t greatest_of_second = std::max(ask(d, "1"), ask(e, "1"));  // the rest is in flight
  const std::int32_t first = scene.asks(0);
  std::uint64_t greatest_of_first = 0;
  for (const std::size_t each : {a, b, c}) {
    greatest_of_first = std::max(greatest_of_first, ask(each, "0"));
  }
  write_back({c, d, e},
             greatest_of_first);  // three of five have it: any majority will do
  scene.granted(first, greatest_of_first);
  scene.writes(first);
  scene.releases(first);
  for (const std::size_t each : {a, b, c}) all.redis(each).cli({"DEL", "any"});
  // The late request arrives at a member that the write-back has not reached.
  greatest_of_second = std::max(greatest_of_second, ask(a, "1"));
  scene.granted(second, greatest_of_second);
  scene.writes(second);
  scene.releases(second);
  return scene.told();
}

run_record semaphore_under_majority(servers& all) {
  stage scene("redlock", {sim::resource_kind::semaphore, 2});
  for (std::size_t each = 0; each < 5; ++each) all.redis(each).cli({"DEL", "permits"});
  const auto take = [&](members reachable) {
    std::size_t votes = 0;
    for (const std::size_t each : reachable) {
      votes += std::stoi(all.redis(each).cli({"INCR", "permits"})) <= 2 ? 1 : 0;
    }
    return votes >= 3;
  };
  std::vector<std::int32_t> holds;
  std::int32_t client = 0;
  // Each member granted at most two of its two permits, and each client has a majority.
  for (const members& reachable : {members{0, 1, 2}, members{0, 3, 4}, members{1, 2, 3}}) {
    const std::int32_t hold = scene.asks(client++, false, spi::mode::permit);
    if (take(reachable)) scene.granted(hold);
    holds.push_back(hold);
  }
  for (const std::int32_t hold : holds) scene.releases(hold);
  return scene.told();
}

run_record row_that_ends_by_the_clients_clock(servers& all) {
  stage scene("postgresql");
  test::postgresql_server& database = all.postgresql();
  database.sql(
      "DROP TABLE IF EXISTS broken; "
      "CREATE TABLE broken (name text PRIMARY KEY, owner int, ends bigint)");
  const auto take = [&](std::int32_t client) {
    const std::int64_t now = std::chrono::duration_cast<milliseconds>(scene.now()).count() +
                             (client == 1 ? 60'000 : 0);  // a minute ahead
    const std::string owner = std::to_string(client);
    const std::string ends = std::to_string(now + 10'000);
    return database.sql("INSERT INTO broken VALUES ('lock', " + owner + ", " + ends +
                        ") ON CONFLICT (name) DO UPDATE SET owner = " + owner + ", ends = " + ends +
                        " WHERE broken.ends < " + std::to_string(now) + " RETURNING owner") ==
           owner;
  };
  const std::int32_t first = scene.asks(0);
  if (take(0)) scene.granted(first);
  const std::int32_t second = scene.asks(1);
  if (take(1)) scene.granted(second);
  scene.releases(first);
  scene.releases(second);
  return scene.told();
}

}  // namespace holdfast::torture::controls
