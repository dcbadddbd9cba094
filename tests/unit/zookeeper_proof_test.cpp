// What proves a ZooKeeper session, and its wire format.
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "stores/zookeeper/protocol.hpp"
#include "stores/zookeeper/session.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace holdfast::zookeeper {
namespace {

using namespace std::chrono_literals;

time_point at(duration since) { return time_point{} + since; }

TEST(zookeeper_proof, a_connection_proves_the_session_from_its_greeting) {
  // Broken: a new session is worth nothing, or more than it is.
  session_proof proof;
  EXPECT_EQ(proof.date(), time_point::min());
  proof.begin(at(100ms), at(110ms), 1200ms);
  EXPECT_EQ(proof.date(), at(100ms));
}

TEST(zookeeper_proof, reads_prove_nothing_however_many) {
  // Broken: a follower that has lost its leader answers, and the hold stays valid for seconds.
  session_proof proof;
  proof.begin(at(0ms), at(10ms), 1200ms);
  for (int i = 1; i < 100; ++i) proof.answered(at(i * 100ms), at(i * 100ms + 5ms), false);
  EXPECT_EQ(proof.date(), at(0ms));
}

TEST(zookeeper_proof, a_write_proves_what_was_answered_long_before_it) {
  // Broken: dated by the newest write, which may not have reached the leader through a follower
  // yet.
  session_proof proof;
  proof.begin(at(0ms), at(10ms), 1200ms);
  proof.answered(at(1000ms), at(1010ms), true);
  EXPECT_EQ(proof.date(), at(0ms));
  proof.answered(at(2000ms), at(2010ms), true);
  EXPECT_EQ(proof.date(), at(0ms));
  proof.answered(at(2300ms), at(2310ms), true);
  EXPECT_EQ(proof.date(), at(1000ms));
}

TEST(zookeeper_proof, a_long_time_without_a_write_leaves_what_the_next_one_proves) {
  // Broken: only the first answers are kept. After a quiet time the proof is as old as these, and a
  // grant comes too late.
  session_proof proof;
  proof.begin(at(0ms), at(10ms), 1200ms);
  for (int i = 1; i <= 1000; ++i) proof.answered(at(i * 1000ms), at(i * 1000ms + 5ms), false);
  EXPECT_EQ(proof.date(), at(0ms));
  proof.answered(at(1'000'500ms), at(1'000'505ms), true);
  EXPECT_EQ(proof.date(), at(999'000ms));
}

TEST(zookeeper_proof, a_request_that_was_stuck_counts_from_its_answer) {
  // Broken: two requests that arrive together prove each other.
  session_proof proof;
  proof.begin(at(0ms), at(10ms), 1200ms);
  proof.answered(at(1000ms), at(2990ms), false);
  proof.answered(at(3000ms), at(3010ms), true);
  EXPECT_EQ(proof.date(), at(0ms));
}

TEST(zookeeper_proof, a_session_that_was_found_again_is_proven_by_a_write) {
  // Broken: a leader without followers knows the session, and its client's hold stays valid for as
  // long as it keeps reconnecting (H85).
  session_proof proof;
  proof.begin(at(0ms), at(10ms), 1200ms);
  proof.go_on(at(4000ms), at(4010ms), 1200ms);
  EXPECT_EQ(proof.date(), at(0ms));
  proof.answered(at(5220ms), at(5230ms), true);
  EXPECT_EQ(proof.date(), at(4000ms));
}

TEST(zookeeper_proof, an_old_proof_is_never_taken_back_but_by_another_session) {
  // Broken: a lease shrinks with a reconnection, or lives on with a session that is over.
  session_proof proof;
  proof.begin(at(5000ms), at(5010ms), 1200ms);
  proof.go_on(at(4000ms), at(5020ms), 1200ms);
  proof.answered(at(6300ms), at(6310ms), true);
  EXPECT_EQ(proof.date(), at(5000ms));
  proof.begin(at(4500ms), at(6320ms), 1200ms);
  EXPECT_EQ(proof.date(), at(4500ms));
  proof.forget();
  EXPECT_EQ(proof.date(), time_point::min());
}

TEST(zookeeper_wire, what_is_written_is_read) {
  // Broken: numbers in the wrong byte order.
  std::string bytes;
  jute_writer(bytes).number(-2).wide(1LL << 40U).flag(true).text("ab");
  EXPECT_EQ(bytes.size(), 4U + 8U + 1U + 6U);
  jute_reader from(bytes);
  EXPECT_EQ(from.number(), -2);
  EXPECT_EQ(from.wide(), 1LL << 40U);
  EXPECT_TRUE(from.flag());
  EXPECT_EQ(from.text(), "ab");
  EXPECT_TRUE(from.good());
  EXPECT_EQ(from.number(), 0);
  EXPECT_FALSE(from.good());
}

TEST(zookeeper_wire, a_server_that_lies_about_lengths_is_refused) {
  // Broken: memory is exhausted, or read beyond its end.
  std::string bytes;
  jute_writer(bytes).number(2'000'000'000);
  EXPECT_FALSE(read_children(bytes));
  EXPECT_FALSE(read_data(bytes));
  EXPECT_FALSE(read_created("xy"));
  EXPECT_FALSE(read_multi(bytes));
  EXPECT_FALSE(read_greeting(""));
}

TEST(zookeeper_wire, a_multi_that_failed_says_by_which_part) {
  // Broken: a step that was not done is taken for done.
  std::string bytes;
  jute_writer into(bytes);
  into.number(-1).flag(false).number(0).number(0);
  into.number(-1).flag(false).number(-101).number(-101);
  into.number(-1).flag(false).number(-2).number(-2);
  into.number(-1).flag(true).number(-1);
  const auto outcome = read_multi(bytes);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->failed, code::no_node);
  EXPECT_TRUE(outcome->made.empty());
}

TEST(zookeeper_wire, a_watch_fires_once_and_only_for_its_kind) {
  // Broken: a waiter is not woken, or all of them are.
  watch_table table;
  std::vector<fired> out;
  const auto node = std::make_shared<watcher>([](const watch_event&) {});
  const auto list = std::make_shared<watcher>([](const watch_event&) {});
  table.add(opcode::get_data, "/a", node);
  table.add(opcode::get_children, "/a", list);
  table.take({watch_event::type::children_changed, "/a"}, out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].who, list);
  table.take({watch_event::type::deleted, "/a"}, out);
  EXPECT_EQ(out.size(), 2U);
  table.take({watch_event::type::deleted, "/a"}, out);
  EXPECT_EQ(out.size(), 2U);
  table.add(opcode::exists, "/b", node);
  table.drop(opcode::exists, "/b", node);
  table.take_all(out);
  EXPECT_EQ(out.size(), 2U);
}

}  // namespace
}  // namespace holdfast::zookeeper
#endif
