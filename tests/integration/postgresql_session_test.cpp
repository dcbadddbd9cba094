// strategy=session: advisory locks of one connection. How the server and other programs see them,
// and that no two names are ever taken for one.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "integration/postgresql_harness.hpp"
#include "stores/postgresql/engine.hpp"
#include "support/also_longer.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

class postgresql_session_locks : public testing::Test {
 protected:
  [[nodiscard]] static std::string number_of(const std::string& name) {
    // As documented in docs/formats/sql.md, not as the schema's function computes it.
    return "('x' || left(encode(sha256(convert_to('" + schema() + "./" + name +
           "', 'UTF8')), 'hex'), 16))::bit(64)::bigint";
  }
  [[nodiscard]] static const std::string& schema() {
    static const std::string name = fresh_schema();
    return name;
  }
  const std::string url_ = shared_postgresql().url(schema(), "&strategy=session");
};

TEST_F(postgresql_session_locks, a_hold_is_an_advisory_lock_that_other_programs_can_respect) {
  // Broken: the documented number is not the one that is locked.
  const client a = open_client(url_);
  auto admin = admin_of(shared_postgresql());
  const std::string take = "SELECT pg_try_advisory_lock(" + number_of("stock") + ")";
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  EXPECT_EQ(admin.ask(take).front(), "f");
  ASSERT_THAT(held->release(), succeeds());
  EXPECT_EQ(admin.ask(take).front(), "t");
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 0s}), fails_with(errc::busy));
  const auto state = a.inspect("stock");
  ASSERT_THAT(state, succeeds());
  ASSERT_EQ(state->holders.size(), 1U);
  EXPECT_FALSE(state->holders[0].fence.has_value());
  EXPECT_EQ(state->holders[0].payload, "a session outside holdfast");
  // Nobody notifies us when it is free: found by polling.
  reply<lease> waits;
  mutex(a, "stock").async_acquire({.wait = patience}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  EXPECT_EQ(admin.ask("SELECT pg_advisory_unlock(" + number_of("stock") + ")").front(), "t");
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_F(postgresql_session_locks, the_first_behind_a_session_outside_looks_often) {
  // Broken: another program's release is noticed up to a second late.
  auto admin = admin_of(shared_postgresql());
  EXPECT_THAT(mutex(open_client(url_), "often").acquire(), succeeds());  // the schema is there
  EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock(" + number_of("often") + ")").front(), "t");
  const auto store = *postgresql::open_postgresql(*spi::parse_url(url_), spi::make_reactor(), {});
  look_often_if_first(*store, "often");
  EXPECT_EQ(admin.ask("SELECT pg_advisory_unlock(" + number_of("often") + ")").front(), "t");
}

TEST_F(postgresql_session_locks, how_to_end_a_session_outside_is_said_where_it_cannot_be_revoked) {
  // Broken: "nobody holds it" about a held lock.
  client a = open_client(url_);
  auto admin = admin_of(shared_postgresql());
  EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock(" + number_of("theirs") + ")").front(), "t");
  const std::string pid = admin.ask("SELECT pg_backend_pid()").front();
  for (const auto how : {revocation::safe, revocation::force}) {
    for (const std::string& claim : {std::string(), "pid:" + pid}) {
      const auto refused = a.revoke("theirs", how, claim);
      ASSERT_THAT(refused, fails_with(errc::unsupported));
      EXPECT_THAT(refused.error().detail,
                  testing::HasSubstr("SELECT pg_terminate_backend(" + pid + ")"));
    }
  }
  const auto other = a.revoke("theirs", revocation::force, "pid:1");
  ASSERT_THAT(other, succeeds());
  EXPECT_TRUE(other->empty());
  EXPECT_EQ(admin.ask("SELECT pg_advisory_unlock(" + number_of("theirs") + ")").front(), "t");
  const auto free = a.revoke("theirs", revocation::force);
  ASSERT_THAT(free, succeeds());
  EXPECT_TRUE(free->empty());
}

TEST_F(postgresql_session_locks, a_name_can_be_the_advisory_key_of_an_existing_fleet) {
  // Broken: existing users of pg_advisory_lock(4711) and we do not exclude each other.
  const client a = open_client(url_);
  auto admin = admin_of(shared_postgresql());
  for (const std::string key : {"4711", "-1", "9223372036854775807", "-9223372036854775808"}) {
    const std::string name = "advisory:" + key;
    const std::string take = "SELECT pg_try_advisory_lock((" + key + ")::bigint)";
    auto held = mutex(a, name).acquire({.wait = patience});
    ASSERT_THAT(held, succeeds());
    EXPECT_EQ(admin.ask(take).front(), "f") << key;
    ASSERT_THAT(held->release(), succeeds());
    EXPECT_EQ(admin.ask(take).front(), "t") << key;
    EXPECT_THAT(mutex(a, name).acquire({.wait = 0s}), fails_with(errc::busy));
    const auto state = a.inspect(name);
    ASSERT_THAT(state, succeeds());
    EXPECT_EQ(state->holders.size(), 1U);
    EXPECT_EQ(admin.ask("SELECT pg_advisory_unlock((" + key + ")::bigint)").front(), "t");
    EXPECT_THAT(mutex(a, name).acquire({.wait = patience}), succeeds());
  }
  for (const char* const wrong :
       {"advisory:", "advisory:007", "advisory:x", "advisory:1,", "advisory:,2", "advisory:1,2,3",
        "advisory:1, 2", "advisory:1,02", "advisory:2147483648,1", "advisory:1752132708,1",
        "advisory:9223372036854775808"}) {
    EXPECT_THAT(mutex(a, wrong).acquire({.wait = 0s}), fails_with(errc::invalid)) << wrong;
    EXPECT_THAT(a.inspect(wrong), fails_with(errc::invalid)) << wrong;
  }
}

TEST_F(postgresql_session_locks, a_name_can_be_an_advisory_key_of_two_integers) {
  // Broken: existing users of pg_advisory_lock(47, 11) and we do not exclude each other; or users
  // of the single number that the two form are excluded, too.
  const client a = open_client(url_);
  const client b = open_client(url_);
  auto admin = admin_of(shared_postgresql());
  const struct {
    std::string pair, one;
  } keys[] = {{"47,11", "201863462923"},
              {"0,4711", "4711"},
              {"-1,-1", "-1"},
              {"2147483647,-2147483648", "9223372034707292160"},
              {"-2147483648,2147483647", "-9223372034707292161"}};
  for (const auto& [pair, one] : keys) {
    SCOPED_TRACE(pair);
    const std::string name = "advisory:" + pair;
    auto held = mutex(a, name).acquire({.wait = patience});
    ASSERT_THAT(held, succeeds());
    EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock(" + pair + ")").front(), "f");
    auto another = mutex(b, "advisory:" + one).acquire({.wait = patience});
    EXPECT_THAT(another, succeeds());  // of the other kind
    EXPECT_THAT(mutex(b, name).acquire({.wait = 0s}), fails_with(errc::busy));
    ASSERT_THAT(held->release(), succeeds());
    EXPECT_TRUE(another->valid());
    EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock((" + one + ")::bigint)").front(), "f");
    EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock(" + pair + ")").front(), "t");
    EXPECT_THAT(mutex(a, name).acquire({.wait = 0s}), fails_with(errc::busy));
    const auto state = a.inspect(name);
    ASSERT_THAT(state, succeeds());
    ASSERT_EQ(state->holders.size(), 1U);
    EXPECT_EQ(state->holders[0].payload, "a session outside holdfast");
    auto waits = in_thread([&] { return mutex(a, name).acquire({.wait = patience}); });
    EXPECT_EQ(admin.ask("SELECT pg_advisory_unlock(" + pair + ")").front(), "t");
    EXPECT_THAT(waits.get(), succeeds());
    auto reading = shared_mutex(a, name).acquire_shared({.wait = patience});
    ASSERT_THAT(reading, succeeds());
    EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock_shared(" + pair + ")").front(), "t");
    EXPECT_EQ(admin.ask("SELECT pg_advisory_unlock_shared(" + pair + ")").front(), "t");
    EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock(" + pair + ")").front(), "f");
  }
}

TEST_F(postgresql_session_locks, a_reader_holds_it_in_shared_mode) {
  // Broken: readers exclude each other, or a foreign writer gets in.
  const client a = open_client(url_);
  auto admin = admin_of(shared_postgresql());
  auto reading = shared_mutex(a, "price").acquire_shared();
  auto another = shared_mutex(a, "price").acquire_shared();
  ASSERT_THAT(another, succeeds());
  EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock(" + number_of("price") + ")").front(), "f");
  EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock_shared(" + number_of("price") + ")").front(),
            "t");
  EXPECT_EQ(admin.ask("SELECT pg_advisory_unlock_shared(" + number_of("price") + ")").front(), "t");
  ASSERT_THAT(reading->release(), succeeds());
  EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock(" + number_of("price") + ")").front(), "f");
  ASSERT_THAT(another->release(), succeeds());
  EXPECT_EQ(admin.ask("SELECT pg_try_advisory_lock(" + number_of("price") + ")").front(), "t");
}

TEST_F(postgresql_session_locks, two_names_of_one_number_are_distinguished) {
  // Broken: a collision of hashes makes two locks one, or two waiters a dead-lock (H78).
  const std::string own = fresh_schema();
  const std::string url = shared_postgresql().url(own, "&strategy=session");
  const client a = open_client(url);
  const client b = open_client(url);
  ASSERT_THAT(mutex(a, "first").acquire({.wait = patience}), succeeds());
  auto admin = admin_of(shared_postgresql());
  admin.run("CREATE OR REPLACE FUNCTION " + own +
            ".number_3(k bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 4711::bigint'");
  auto held = mutex(a, "first").acquire();
  ASSERT_THAT(held, succeeds());
  for (const client& from : {a, b}) {
    const auto refused = mutex(from, "second").acquire({.wait = patience});
    EXPECT_THAT(refused, fails_with(errc::name_conflict));
    EXPECT_THAT(mutex(from, "first").acquire({.wait = 0s}), fails_with(errc::busy));
  }
  ASSERT_THAT(held->release(), succeeds());
  const auto second = mutex(b, "second").acquire({.wait = 0s});
  EXPECT_THAT(second, succeeds());
  EXPECT_THAT(mutex(a, "first").acquire({.wait = patience}), fails_with(errc::name_conflict));
}

TEST_F(postgresql_session_locks, one_connection_carries_them_all) {
  // Broken: each lock, or each waiter, costs a connection (H78).
  client_options options;
  options.payload = "many";
  const client a = open_client(url_ + "&application_name=hf_many", options);
  const client b = open_client(url_ + "&application_name=hf_many", options);
  std::vector<lease> held;
  std::vector<std::unique_ptr<reply<lease>>> waits;
  for (int i = 0; i < 50; ++i) {
    auto got = mutex(a, "many/" + std::to_string(i)).acquire();
    ASSERT_THAT(got, succeeds());
    held.push_back(*std::move(got));
    waits.push_back(std::make_unique<reply<lease>>());
    mutex(b, "many/" + std::to_string(i))
        .async_acquire({.wait = 4 * patience}, {}, waits.back()->callback());
  }
  ASSERT_TRUE(has_waiters(a, "many/49", 1));
  auto admin = admin_of(shared_postgresql());
  // Per client: one that carries the locks, one that listens, one for looks.
  EXPECT_TRUE(eventually([&] {
    return std::stoi(admin
                         .ask("SELECT count(*) FROM pg_stat_activity "
                              "WHERE application_name = 'hf_many'")
                         .front()) <= 6;
  }));
  EXPECT_EQ(admin.ask("SELECT count(DISTINCT pid) FROM " + schema() + ".holds").front(), "1");
  held.clear();
  for (auto& each : waits) EXPECT_THAT(each->future.get(), succeeds());
}

TEST_F(postgresql_session_locks, a_full_table_of_locks_is_said_and_costs_nobody_a_lock) {
  // Broken: "out of shared memory" taken for an outage, and tried again forever (H78).
  postgresql_server small(
      {.settings = {"max_locks_per_transaction=10", "max_connections=12", "max_worker_processes=0",
                    "autovacuum=off", "max_wal_senders=0"},
       .access = {}});
  const client a = open_client(small.url("holdfast", "&strategy=session"));
  std::vector<lease> held;
  result<lease> last;
  while (held.size() < 4'000) {
    last = mutex(a, "n/" + std::to_string(held.size())).acquire({.wait = patience});
    if (!last) break;
    held.push_back(*std::move(last));
  }
  EXPECT_THAT(last, fails_with(errc::overloaded));
  EXPECT_THAT(last.error().detail, testing::HasSubstr("max_locks_per_transaction"));
  EXPECT_GT(held.size(), 100U);
  for (const lease& each : held) EXPECT_TRUE(each.valid());
  held.resize(held.size() / 2);
  EXPECT_TRUE(eventually([&] { return mutex(a, "again").acquire({.wait = 0s}).has_value(); }));
}

TEST_F(postgresql_session_locks, a_commit_that_fails_leaves_no_lock_behind) {
  // Broken: the rows of a grant are rolled back, its lock stays with the connection, and nobody ever releases it.
  const std::string own = fresh_schema();
  const client a = open_client(shared_postgresql().url(own, "&strategy=session"));
  ASSERT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  auto admin = admin_of(shared_postgresql());
  admin.run(
      "CREATE FUNCTION " + own +
      ".refuse() RETURNS trigger LANGUAGE plpgsql AS "
      "'BEGIN RAISE EXCEPTION ''no''; END'; CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON " +
      own + ".holds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + own +
      ".refuse()");
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 0s}), fails_with(errc::unavailable));
  admin.run("DROP TRIGGER refuse ON " + own + ".holds");
  const client b = open_client(shared_postgresql().url(own, "&strategy=session"));
  EXPECT_THAT(mutex(b, "stock").acquire({.wait = patience}), succeeds());
}

TEST_F(postgresql_session_locks, a_hold_that_cannot_be_given_back_ends_with_its_connection) {
  // Broken: a release fails, and its connection keeps the lock for as long as it lives.
  const client a = open_client(url_);
  auto admin = admin_of(shared_postgresql());
  auto held = mutex(a, "kept").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  const std::string holds = schema() + ".holds";
  const auto is_freed = [&](const std::string& name) {
    const std::string number = number_of(name);
    return eventually([&] {
      if (admin.ask("SELECT pg_try_advisory_lock(" + number + ")").front() != "t") return false;
      return admin.ask("SELECT pg_advisory_unlock(" + number + ")").front() == "t";
    });
  };
  admin.run("CREATE OR REPLACE FUNCTION " + schema() +
            ".refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN RAISE EXCEPTION ''no''; END'");
  const std::string refuse = "CREATE TRIGGER refuse BEFORE DELETE ON " + holds +
                             " FOR EACH ROW EXECUTE FUNCTION " + schema() + ".refuse()";
  admin.run(refuse);
  EXPECT_THAT(held->release(), fails_with(errc::unavailable));
  EXPECT_TRUE(is_freed("kept"));
  admin.run("DROP TRIGGER refuse ON " + holds);
  // Given back by the store itself, when its time is over.
  const auto ends = mutex(a, "ends", {.ttl = 1s, .renew = renew::never, .lock_delay = 1ms})
                        .acquire({.wait = patience});
  ASSERT_THAT(ends, succeeds());
  admin.run(refuse);
  EXPECT_TRUE(is_freed("ends"));
  admin.run("DROP TRIGGER refuse ON " + holds);
  EXPECT_THAT(mutex(a, "kept").acquire({.wait = patience}), succeeds());
}

TEST_F(postgresql_session_locks, a_connection_that_the_server_would_end_too_early_carries_none) {
  // Broken: a server gives a half-open holder's lock away while the holder still considers it valid
  // (H76).
  const client a = open_client(url_);
  ASSERT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
  auto admin = admin_of(shared_postgresql());
  admin.run("SET tcp_keepalives_idle = 5");
  EXPECT_THROW(admin.ask("SELECT " + schema() + ".begin_3('impatient')"), std::runtime_error);
  admin.run("SET tcp_keepalives_idle = 30");
  EXPECT_NO_THROW(admin.ask("SELECT " + schema() + ".begin_3('patient')"));
}

TEST_F(postgresql_session_locks, the_session_of_a_holder_is_not_taken_for_a_new_one) {
  // Broken: a transaction pooler lends it to a second client, which takes the hold for that of a
  // vanished client; PostgreSQL grants a session what it already has, and two have the lock (H77).
  const client a = open_client(url_);
  ASSERT_THAT(a.inspect("lent"), succeeds());
  auto lent = admin_of(shared_postgresql());
  const std::string home = lent.ask("SELECT " + schema() + ".begin_3('first')").front();
  const auto attempt = [&](const std::string& id) {
    return lent
        .ask("SELECT " + schema() + ".session_attempt_3('/lent', '" + id + "', '" + id +
             "', 'p', 0::smallint, false, 30000000, 0, 1, '', " + home + ")")
        .front();
  };
  ASSERT_EQ(attempt("first").front(), 'g');
  EXPECT_THROW(lent.ask("SELECT " + schema() + ".begin_3('second')"), std::runtime_error);
  EXPECT_EQ(attempt("second").front(), 'b');
  // Once released, the connection may serve anybody.
  lent.ask("SELECT " + schema() + ".session_leave_3('/lent', 'first', 0, " + home + ")");
  EXPECT_NO_THROW(lent.ask("SELECT " + schema() + ".begin_3('second')"));
}

TEST_F(postgresql_session_locks, a_row_of_an_earlier_backend_of_the_same_number_is_in_nobodys_way) {
  // Broken: a backend gets the number of one that died, and the holds of the dead one are taken for its own: nobody
  // gets the lock from it, and by force it is ended itself.
  const client a = open_client(url_);
  auto held = mutex(a, "first").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  auto later = admin_of(shared_postgresql());
  const std::string pid = later.ask("SELECT pg_backend_pid()").front();
  later.run("INSERT INTO " + schema() +
            ".holds SELECT convert_to('dead' || i, 'UTF8'), strategy, '/second', " +
            number_of("second") + ", " + pid +
            ", process, public, mode, revoked, told, fence, since, ends, ttl, "
            "delay, payload FROM " +
            schema() + ".holds, generate_series(1, 300) i WHERE key = '/first'");
  EXPECT_EQ(holders(a, "first"), 1U);
  EXPECT_EQ(holders(a, "second"), 0U);
  EXPECT_THAT(client(a).revoke("second", revocation::force), succeeds());
  later.ask("SELECT " + schema() + ".begin_3('later')");
  EXPECT_EQ(later
                .ask("SELECT " + schema() +
                     ".session_attempt_3('/second', 'x', 'x', 'later', 0::smallint, false, "
                     "30000000, 0, 1, '', " +
                     pid + ")")
                .front()
                .front(),
            'g');
}

TEST(postgresql_session_trouble, a_silent_server_is_tolerated_as_long_as_the_lease_is_valid) {
  // Broken: one slow answer, and all locks of the client are gone.
  const std::string schema = fresh_schema();
  const client a = open_client(troubled_server().url(schema, "&strategy=session"));
  auto admin = admin_of(troubled_server());
  EXPECT_TRUE(also_longer(6s, [&](duration ttl) {
    const auto held = mutex(a, "stock", {.ttl = ttl}).acquire({.wait = patience});
    EXPECT_THAT(held, succeeds());
    if (!held) return testing::AssertionFailure() << "not granted";
    const auto carrier = admin.ask("SELECT pid FROM " + schema + ".holds");
    if (carrier.empty()) return testing::AssertionFailure() << "lost already";
    ::kill(std::stoi(carrier.front()), SIGSTOP);
    // Longer than a connection without locks may be silent.
    EXPECT_THAT(mutex(a, "other").acquire({.wait = ttl * 5 / 12}), fails_with(errc::unavailable));
    ::kill(std::stoi(carrier.front()), SIGCONT);
    EXPECT_THAT(mutex(a, "other").acquire({.wait = patience}), succeeds());
    return held->valid() ? testing::AssertionSuccess() : testing::AssertionFailure() << "lost";
  }));
}

}  // namespace
}  // namespace holdfast::test

#endif
