// The servers that broken locks are played on, started when first needed.
#pragma once

#include "support/etcd_server.hpp"
#include "support/postgresql_server.hpp"
#include "support/redis_server.hpp"
#include "support/zookeeper_server.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::torture {

// Not thread-safe.
class servers {
 public:
  test::redis_server& redis() { return redis(0); }
  test::redis_server& redis(std::size_t which) {
    while (redis_.size() <= which) redis_.push_back(std::make_unique<test::redis_server>());
    return *redis_[which];
  }
  test::postgresql_server& postgresql() {
    if (!postgresql_) postgresql_ = std::make_unique<test::postgresql_server>();
    return *postgresql_;
  }
  test::zookeeper_server& zookeeper() {
    if (!zookeeper_) zookeeper_ = test::start_zookeeper();
    return *zookeeper_;
  }
  test::etcd_server& etcd() {
    if (!etcd_) etcd_ = test::start_etcd();
    return *etcd_;
  }

  // A new one for each caller: what is done to it is not undone.
  test::zookeeper_ensemble& ensemble() {
    ensemble_ = std::make_unique<test::zookeeper_ensemble>();
    return *ensemble_;
  }

 private:
  std::vector<std::unique_ptr<test::redis_server>> redis_;
  std::unique_ptr<test::postgresql_server> postgresql_;
  std::unique_ptr<test::zookeeper_server> zookeeper_;
  std::unique_ptr<test::zookeeper_ensemble> ensemble_;
  std::unique_ptr<test::etcd_server> etcd_;
};

// The plain Redis lock of most tutorials, right as far as it goes: SET NX PX with a unique
// value. What is broken is what its users do with it.
class plain_redis_lock {
 public:
  plain_redis_lock(test::redis_server& server, std::string key)
      : server_(server), key_(std::move(key)) {
    server_.cli({"DEL", key_});
  }

  bool take(const std::string& owner, int milliseconds) const {
    return server_.cli({"SET", key_, owner, "NX", "PX", std::to_string(milliseconds)}) == "OK";
  }
  // Compare and delete, in one step.
  bool give_back(const std::string& owner) const {
    static constexpr const char* script =
        "if redis.call('GET', KEYS[1]) == ARGV[1] then "
        "return redis.call('DEL', KEYS[1]) end return 0";
    return server_.cli({"EVAL", script, "1", key_, owner}) == "1";
  }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }
  [[nodiscard]] test::redis_server& server() const noexcept { return server_; }

 private:
  test::redis_server& server_;
  std::string key_;
};

}  // namespace holdfast::torture
