// How `doctor` interprets what ZooKeeper's servers report about themselves.
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "stores/zookeeper/doctor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::zookeeper {
namespace {

using status = spi::check::status;

// As servers of 3.8 write them.
const std::string idle = "This ZooKeeper instance is not currently serving requests\n";
const std::string refused = "srvr is not executed because it is not in the whitelist.\n";
std::string serving(const std::string& mode) {
  return "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2022-12-18\nLatency min/avg/max: "
         "0/0.0/0\nReceived: 1\nZxid: 0x0\nMode: " +
         mode + "\nNode count: 5\n";
}

struct verdict {
  spi::check servers, words, quorum;
};
verdict judge(const std::vector<result<std::string>>& answers) {
  ensemble_health health;
  for (const auto& each : answers) health.add("host", each);
  const std::vector<spi::check> checks = health.checks();
  return {checks.at(0), checks.at(1), checks.at(2)};
}

TEST(zookeeper_health, an_ensemble_with_a_leader_is_well) {
  // Broken: false alarms, and nobody reads the right ones.
  const verdict found = judge({serving("leader"), serving("follower"), serving("observer")});
  EXPECT_EQ(found.servers.state, status::ok);
  EXPECT_EQ(found.servers.detail, "3 of 3 answer, version 3.8.0");
  EXPECT_EQ(found.words.state, status::ok);
  EXPECT_EQ(found.quorum.state, status::ok);
}

TEST(zookeeper_health, a_lost_majority_is_a_finding_and_not_a_missing_permission) {
  // Broken: in an outage `doctor` says that a leader is there, and has the operator change zoo.cfg.
  const verdict found = judge({idle, failure(errc::unavailable, "refused"), idle});
  EXPECT_EQ(found.quorum.state, status::fail);
  EXPECT_THAT(found.quorum.detail, testing::HasSubstr("2 of 3"));
  EXPECT_EQ(found.words.state, status::ok);
  EXPECT_EQ(found.servers.state, status::warn);
  EXPECT_THAT(found.servers.detail, testing::HasSubstr("host: refused"));
}

TEST(zookeeper_health, servers_that_may_not_answer_are_not_called_healthy) {
  // Broken: "a leader is there" is reported although nobody said so.
  const verdict found = judge({refused, refused, refused});
  EXPECT_EQ(found.words.state, status::warn);
  EXPECT_THAT(found.words.remedy, testing::HasSubstr("whitelist"));
  EXPECT_EQ(found.quorum.state, status::warn);
  EXPECT_THAT(found.quorum.detail, testing::HasSubstr("not known"));
}

TEST(zookeeper_health, a_leader_outside_the_url_and_a_server_alone_are_warnings) {
  // Broken: the operator does not learn what the next outage will be.
  EXPECT_EQ(judge({serving("follower")}).quorum.state, status::warn);
  EXPECT_EQ(judge({serving("standalone")}).quorum.state, status::warn);
}

TEST(zookeeper_health, a_silent_ensemble_fails) {
  // Broken: `doctor` ends with 0 although no server is there.
  const verdict found = judge({failure(errc::unavailable, "refused")});
  EXPECT_EQ(found.servers.state, status::fail);
  EXPECT_NE(found.words.state, status::ok);
  EXPECT_NE(found.quorum.state, status::ok);
}

}  // namespace
}  // namespace holdfast::zookeeper
#endif
