// Broken locks on one Redis server.
#include "torture/controls/single_redis.hpp"

#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "torture/controls/stage.hpp"

#include <string>
#include <utility>

namespace holdfast::torture::controls {

namespace {

using std::chrono::milliseconds;

constexpr duration patience = milliseconds(1500);

// Tries until it has the lock, or for too long.
template <class Try>
bool wait_for(Try&& attempt) {
  return test::eventually(std::forward<Try>(attempt), patience);
}

// Until its holder has this little time left, or none.
void run_down(const plain_redis_lock& lock, milliseconds left) {
  static_cast<void>(test::eventually([&] {
    return std::stoi(lock.server().cli({"PTTL", lock.key()})) <= left.count();
  }));
}

}  // namespace

run_record setnx_then_expire(servers& all) {
  stage scene("redis");
  test::redis_server& server = all.redis();
  server.cli({"DEL", "setnx"});
  const std::int32_t first = scene.asks(0);
  server.cli({"SETNX", "setnx", "0"});
  scene.granted(first);
  // Between SETNX and EXPIRE.
  scene.killed(0);
  const std::int32_t second = scene.asks(1);
  if (wait_for([&] { return server.cli({"SETNX", "setnx", "1"}) == "1"; })) {
    scene.granted(second);
  } else {
    scene.times_out(second);
  }
  return scene.told();
}

run_record del_without_owner(servers& all) {
  stage scene("redis");
  const plain_redis_lock lock(all.redis(), "del");
  const std::int32_t first = scene.asks(0);
  lock.take("0", 150);
  scene.granted(first);
  run_down(lock, milliseconds(10));
  scene.gives_up(first);  // it knows that its time is up, and cleans up a little late
  const std::int32_t second = scene.asks(1);
  wait_for([&] { return lock.take("1", 5000); });
  scene.granted(second);
  lock.server().cli({"DEL", lock.key()});  // the first client's
  const std::int32_t third = scene.asks(2);
  if (wait_for([&] { return lock.take("2", 5000); })) scene.granted(third);
  scene.releases(second);
  scene.releases(third);
  return scene.told();
}

run_record timestamp_and_getset(servers& all) {
  stage scene("redis");
  test::redis_server& server = all.redis();
  server.cli({"DEL", "getset"});
  const auto clock_of = [&](std::int32_t client) {
    const auto now = std::chrono::duration_cast<milliseconds>(scene.now()).count();
    return client == 1 ? now + 1000 : now;  // a second ahead
  };
  constexpr std::int64_t ttl = 500;
  const std::int32_t first = scene.asks(0);
  server.cli({"SETNX", "getset", std::to_string(clock_of(0) + ttl)});
  scene.granted(first);
  const std::int32_t second = scene.asks(1);
  if (server.cli({"SETNX", "getset", std::to_string(clock_of(1) + ttl)}) == "0") {
    const std::string seen = server.cli({"GET", "getset"});
    const bool expired = std::stoll(seen) < clock_of(1);
    if (expired && server.cli({"GETSET", "getset", std::to_string(clock_of(1) + ttl)}) == seen) {
      scene.granted(second);
    }
  }
  scene.releases(first);
  scene.releases(second);
  return scene.told();
}

run_record work_longer_than_the_lease(servers& all) {
  stage scene("redis");
  const plain_redis_lock lock(all.redis(), "longer");
  const std::int32_t first = scene.asks(0);
  lock.take("0", 150);
  scene.granted(first);
  const std::int32_t second = scene.asks(1);
  if (wait_for([&] { return lock.take("1", 5000); })) scene.granted(second);
  scene.releases(first);  // the work is done now
  lock.give_back("0");
  scene.releases(second);
  return scene.told();
}

run_record renewal_after_release(servers& all) {
  stage scene("redis");
  const plain_redis_lock lock(all.redis(), "renewal");
  const std::int32_t first = scene.asks(0);
  lock.take("0", 300);
  scene.granted(first);
  scene.releases(first);
  lock.give_back("0");
  // Nobody stopped the renewing thread. It sets the lock again, forever.
  const auto renew = [&] { lock.server().cli({"SET", lock.key(), "0", "PX", "300"}); };
  renew();
  const std::int32_t second = scene.asks(1);
  const bool got = wait_for([&] {
    renew();
    return lock.take("1", 5000);
  });
  if (got) {
    scene.granted(second);
  } else {
    scene.times_out(second);
  }
  return scene.told();
}

run_record queue_that_skips(servers& all) {
  stage scene("redis");
  const plain_redis_lock lock(all.redis(), "queue");
  const std::string line = "queue:line";
  lock.server().cli({"DEL", line});
  const std::int32_t first = scene.asks(0, true);
  lock.take("0", 5000);
  scene.granted(first);
  const std::int32_t second = scene.asks(1, true);
  lock.server().cli({"RPUSH", line, "1"});
  scene.queued(second);
  const std::int32_t third = scene.asks(2, true);
  lock.server().cli({"RPUSH", line, "2"});
  scene.queued(third);
  scene.releases(first);
  lock.give_back("0");
  for (int left = 2; left > 0; --left) {
    const std::string next = lock.server().cli({"RPOP", line});  // the other end
    const std::int32_t hold = next == "1" ? second : third;
    lock.take(next, 5000);
    scene.granted(hold);
    scene.releases(hold);
    lock.give_back(next);
  }
  return scene.told();
}

run_record push_dated_at_receipt(servers& all) {
  stage scene("redis");
  const plain_redis_lock lock(all.redis(), "push");
  const std::string inbox = "push:inbox";
  lock.server().cli({"DEL", inbox});
  constexpr int offer = 300;
  const std::int32_t first = scene.asks(0);
  // The client that released hands the lock over and notifies the next one.
  lock.take("0", offer);
  lock.server().cli({"RPUSH", inbox, "granted"});
  scene.paused(0);
  const std::int32_t second = scene.asks(1);
  run_down(lock, milliseconds(offer / 3));
  scene.resumed(0);
  lock.server().cli({"LPOP", inbox});
  scene.granted(first);  // for 300 ms from now, it thinks
  if (wait_for([&] { return lock.take("1", 5000); })) scene.granted(second);
  scene.releases(first);
  scene.releases(second);
  return scene.told();
}

run_record publish_count_as_life(servers& all) {
  stage scene("redis");
  const plain_redis_lock lock(all.redis(), "publish");
  // Somebody who watches everything, as monitoring does.
  const test::child_process monitor({"redis-cli", "-s", lock.server().socket(), "PSUBSCRIBE", "*"},
                                    lock.server().folder() / "monitor");
  const bool listening = test::eventually([&] {
    return lock.server().cli({"PUBLISH", "publish:probe", "x"}) == "1";
  });
  scene.asks(0);
  const std::int32_t second = scene.asks(1);
  scene.killed(0);  // while it waits, first in the queue
  // The client that releases hands over to the first in the queue, since somebody received
  // the message.
  if (listening && lock.server().cli({"PUBLISH", "publish:0", "granted"}) != "0") {
    lock.take("0", 5000);
  }
  if (wait_for([&] { return lock.take("1", 5000); })) {
    scene.granted(second);
  } else {
    scene.times_out(second);
  }
  return scene.told();
}

}  // namespace holdfast::torture::controls
