// holdfast serve, queried by curl: every address, on three engines; who is refused.
#include "cli/serving.hpp"

#ifdef HOLDFAST_WITH_POSTGRESQL
#include "support/postgresql_server.hpp"
#endif
#ifdef HOLDFAST_WITH_REDIS
#include "support/redis_server.hpp"
#endif

#include <memory>
#include <string>

namespace holdfast::cli_test {
namespace {

using nlohmann::json;

// What could go wrong with one engine only.
class serve_engine : public serve, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    url_ = file_;
#ifdef HOLDFAST_WITH_REDIS
    if (std::string(GetParam()) == "redis") {
      redis_ = std::make_unique<test::redis_server>();
      url_ = "redis://127.0.0.1:" + std::to_string(redis_->port());
    }
#endif
#ifdef HOLDFAST_WITH_POSTGRESQL
    if (std::string(GetParam()) == "postgresql") {
      schema_ = std::make_unique<test::borrowed_schema>();
      url_ = schema_->url();
    }
#endif
    shell_.environment["HOLDFAST_URL"] = url_;
  }

  std::string url_;
#ifdef HOLDFAST_WITH_REDIS
  std::unique_ptr<test::redis_server> redis_;
#endif
#ifdef HOLDFAST_WITH_POSTGRESQL
  std::unique_ptr<test::borrowed_schema> schema_;
#endif
};

TEST_P(serve_engine, what_is_held_and_waited_for_is_told_at_every_address) {
  // Broken: an operator sees nothing, or something outdated.
  const process server = serve_at({"it=" + url_});
  ASSERT_TRUE(eventually([&] { return metric("holdfast_engine_up{engine=\"it\"}") == "1"; }));
  const process stream = shell_.start(curl("/api/events"));
  ASSERT_TRUE(stream.says("event: stats"));
  const process holder = hold("nightly");
  ASSERT_TRUE(listed("nightly"));
  ASSERT_TRUE(stream.says("\"event\":\"granted\",\"name\":\"nightly\"")) << stream.out();
  const process waiter = begin({"run", "nightly", "--", "true"});
  ASSERT_TRUE(eventually([&] { return metric("holdfast_engine_waiting{engine=\"it\"}") == "1"; }));
  EXPECT_EQ(metric("holdfast_engine_held{engine=\"it\"}"), "1");
  EXPECT_EQ(metric("holdfast_engine_names{engine=\"it\"}"), "1");
  EXPECT_EQ(metric("holdfast_engine_events_total{engine=\"it\",event=\"granted\"}"), "1");
  EXPECT_EQ(metric("holdfast_engine_events_total{engine=\"it\",event=\"expired\"}"), "0");

  const json shown = document("/api/locks/nightly");
  EXPECT_EQ(shown["name"], "nightly");
  EXPECT_EQ(shown["engine"], "it");
  ASSERT_EQ(shown["holders"].size(), 1U) << shown;
  EXPECT_NE(shown["holders"][0]["payload"].get<std::string>().find(":sh"), std::string::npos);
  EXPECT_EQ(shown["waiters"].size(), 1U) << shown;
  EXPECT_EQ(shown["past"][0]["event"], "granted") << shown;
  const json some = document("/api/locks?name=nightly&name=nobody");
  ASSERT_EQ(some["locks"].size(), 2U);
  EXPECT_EQ(some["locks"][0]["holders"].size(), 1U);
  EXPECT_EQ(some["locks"][1]["holders"].size(), 0U);

  ASSERT_TRUE(
      eventually([&] { return !document("/api/engines")["engines"][0]["checks"].empty(); }));
  const json engine = document("/api/engines")["engines"][0];
  EXPECT_EQ(engine["held"], 1) << engine;
  EXPECT_GE(engine["seconds"]["granted"].size(), 100U);
}

TEST_P(serve_engine, a_hostile_name_is_the_name_that_is_meant) {
  // Broken: a slash or a '%' in a name shows, or revokes, another lock.
  write_file(home_ / "token", "0123456789abcdef\n");
  const words pass{"--header", "Authorization: Bearer 0123456789abcdef"};
  words post = pass;
  post.insert(post.end(), {"--request", "POST"});
  const process server = serve_at({url_}, {"--allow-revoke", "--token-file", home_ / "token"});
  const std::string name = "a/../b/revoke?x=1&y#<img src=x>%2F\"é";
  const std::string encoded = "a%2F..%2Fb%2Frevoke%3Fx%3D1%26y%23%3Cimg%20src%3Dx%3E%252F%22%C3%A9";
  const process other = hold("a");
  process holder = hold(name, {"--ttl", "2s"});
  ASSERT_TRUE(eventually([&] { return status("/api/locks/" + encoded, pass) == 200; }));
  EXPECT_EQ(document("/api/locks/" + encoded, pass)["name"], name);
  EXPECT_EQ(document("/api/locks/" + encoded, pass)["holders"].size(), 1U);
  // Slashes may be left unescaped.
  EXPECT_EQ(document("/api/locks/a/b", pass)["name"], "a/b");
  EXPECT_EQ(status("/api/locks/a%2Fb/revoke", post), 404) << "nobody holds it";
  const web_answer got = get("/api/locks/" + encoded + "/revoke", post);
  EXPECT_EQ(got.status, 200) << got.body;
  EXPECT_NE(got.body.find("no longer renewed"), std::string::npos) << got.body;
  EXPECT_EQ(holder.end().code, 123);
  EXPECT_TRUE(server.complains("revoked over HTTP: 'a/../b/revoke?x=1&y#<img src=x>%2F\"é'"));
  EXPECT_EQ(server.err().find("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(document("/api/locks/a", pass)["holders"].size(), 1U) << "the other is untouched";
}

const char* const engines[] = {
    "embedded",
#ifdef HOLDFAST_WITH_REDIS
    "redis",
#endif
#ifdef HOLDFAST_WITH_POSTGRESQL
    "postgresql",
#endif
};
INSTANTIATE_TEST_SUITE_P(on, serve_engine, ::testing::ValuesIn(engines),
                         [](const auto& one) { return std::string(one.param); });

TEST_F(serve, refuses_what_another_site_makes_a_browser_send) {
  // Broken: a web page reads what is locked here, through its reader's browser.
  const process server = serve_at({file_}, {"--allow-host", "locks.example"});
  EXPECT_EQ(status("/healthz"), 200);
  EXPECT_EQ(status("/api/engines", {"--header", "Host: evil.example"}), 421);
  EXPECT_EQ(status("/api/engines", {"--header", "Host: 127.0.0.1.evil.example"}), 421);
  EXPECT_EQ(status("/api/engines", {"--header", "Host: 192.0.2.1"}), 421);
  EXPECT_EQ(status("/api/engines", {"--header", "Host:"}), 421);
  EXPECT_EQ(status("/", {"--header", "Host: evil.example"}), 421);
  EXPECT_EQ(status("/api/engines", {"--header", "Host: localhost:1"}), 200);
  EXPECT_EQ(status("/api/engines", {"--header", "Host: [::1]"}), 200);
  EXPECT_EQ(status("/api/engines", {"--header", "Host: Locks.Example:80"}), 200);
  EXPECT_EQ(status("/api/engines", {"--header", "Origin: http://evil.example"}), 403);
  EXPECT_EQ(status("/api/engines", {"--header", "Origin: null"}), 403);
  EXPECT_EQ(status("/api/engines", {"--header", "Origin: " + address_ + "0"}), 403);
  EXPECT_EQ(status("/api/engines", {"--header", "Origin: " + address_}), 200);
  EXPECT_EQ(status("/api/engines", {"--header", "Sec-Fetch-Site: cross-site"}), 403);
  EXPECT_EQ(status("/api/engines", {"--header", "Sec-Fetch-Site: same-origin"}), 200);
  const words link{"--header", "Sec-Fetch-Site: cross-site", "--header",
                   "Sec-Fetch-Mode: navigate"};
  EXPECT_EQ(status("/", link), 200) << "a link to the page is fine";
  EXPECT_EQ(status("/api/engines", link), 403);
}

TEST_F(serve, says_what_is_wrong_with_a_request) {
  // Broken: a script gets an empty answer and continues.
  const process server = serve_at({file_});
  EXPECT_EQ(status("/nothing"), 404);
  EXPECT_EQ(status("/api/locks/"), 404);
  EXPECT_EQ(status("/api/locks/%zz"), 400);
  EXPECT_EQ(status("/api/locks/a%0Ab"), 400);
  EXPECT_EQ(status("/api/locks/%FF"), 400);
  EXPECT_EQ(status("/api/locks/" + std::string(513, 'x')), 400);
  EXPECT_EQ(status("/api/locks/x?engine=none"), 404);
  EXPECT_EQ(status("/api/locks?engine=none"), 404);
  EXPECT_EQ(status("/api/events?engine=none"), 404);
  EXPECT_EQ(status("/api/locks?engine=%z"), 400);
  std::string many = "/api/locks?name=a";
  for (int i = 0; i < 64; ++i) many += "&name=a";
  EXPECT_EQ(status(many), 400);
  EXPECT_EQ(status("/" + std::string(9000, 'x')), 414);
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
    const web_answer got = get("/api/locks", {"--request", method});
    EXPECT_EQ(got.status, 405) << method;
    EXPECT_NE(got.head.find("Allow: GET, HEAD"), std::string::npos) << got.head;
  }
  EXPECT_EQ(status("/api/locks/x/revoke", {"--request", "POST"}), 403) << "it only reads";
  EXPECT_EQ(status("/api/locks", {"--request", "POST", "--data", std::string(100'000, 'x')}), 405);
  const json free = document("/api/locks/nobody");
  EXPECT_TRUE(free["holders"].empty() && free["waiters"].empty()) << free;
}

TEST_F(serve, the_page_runs_nothing_but_its_own_script) {
  // Broken: a name that gets into the page as markup runs.
  const process server = serve_at({file_});
  const web_answer page = get("/");
  EXPECT_EQ(page.status, 200);
  const auto at = page.head.find("script-src 'nonce-");
  ASSERT_NE(at, std::string::npos) << page.head;
  const std::string nonce = page.head.substr(at + 18, 32);
  EXPECT_NE(page.body.find("<script nonce=\"" + nonce + "\">"), std::string::npos);
  EXPECT_EQ(page.body.find("{{"), std::string::npos) << "a mark that nothing was put into";
  EXPECT_EQ(page.body.find("innerHTML"), std::string::npos);
  EXPECT_NE(page.head.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(get("/").body.find(nonce), std::string::npos) << "another one each time";
}

TEST_F(serve, needs_the_token_where_one_was_given) {
  // Broken: anyone who can reach it reads, or revokes.
  write_file(home_ / "token", "correct-horse-battery\n");
  const process server = serve_at({file_}, {"--token-file", home_ / "token"});
  const auto with = [](const std::string& token) {
    return words{"--header", "Authorization: " + token};
  };
  for (const char* path :
       {"/metrics", "/api/engines", "/api/locks", "/api/locks/x", "/api/events"}) {
    EXPECT_EQ(status(path), 401) << path;
    EXPECT_EQ(status(path, with("Bearer correct-horse-batterx")), 401) << path;
    EXPECT_EQ(status(path, with("Bearer correct-horse-batteryy")), 401) << path;
    EXPECT_EQ(status(path, with("Bearer ")), 401) << path;
  }
  EXPECT_EQ(status("/metrics?token=correct-horse-battery"), 401) << "not in an address";
  EXPECT_EQ(status("/metrics", with("Bearer correct-horse-battery")), 200);
  EXPECT_EQ(status("/"), 200) << "which asks for it";
  EXPECT_EQ(status("/healthz"), 200);
  EXPECT_EQ(server.err().find("correct-horse"), std::string::npos);
}

TEST_F(serve, usage_errors_are_reported_before_anything_listens) {
  // Broken: it listens on all interfaces, and nobody noticed.
  write_file(home_ / "short", "0123456789\n");
  write_file(home_ / "escaped", "0123456789abcdef%41\n");
  for (const words& options :
       std::vector<words>{{"--listen", "0.0.0.0:0"},
                          {"--listen", "[::]:0"},
                          {"--listen", "127.0.0.1"},
                          {"--listen", ":80"},
                          {"--listen", "127.0.0.1:65536"},
                          {"--allow-revoke"},
                          {"--token-file", home_ / "missing"},
                          {"--token-file", home_ / "short"},
                          {"--token-file", home_ / "escaped"},
                          {"name"},
                          {"--url", "memory:"},
                          {"--url", "a=" + file_, "--url", "a=" + file_ + "2"}}) {
    words line{"serve"};
    line.insert(line.end(), options.begin(), options.end());
    const answer got = type(line);
    EXPECT_EQ(got.code, 2) << options.back() << got.err;
  }
  EXPECT_EQ(type({"--url", file_, "--url", file_, "ls"}).code, 2) << "several are for serve only";
  const process first = serve_at({file_});
  const answer second =
      type({"--url", file_, "serve", "--listen", address_.substr(std::string("http://").size())});
  EXPECT_EQ(second.code, 122);
  EXPECT_NE(second.err.find("in use"), std::string::npos) << second.err;
}

TEST_F(serve, several_engines_are_distinguished) {
  // Broken: a name on one engine is shown, or revoked, on the other.
  const std::string second = "sqlite:" + home_ / "second.db";
  const process server = serve_at({"one=" + file_, "two=" + second});
  const process holder = hold("x", {"--url", second});
  ASSERT_TRUE(listed("x"));
  EXPECT_EQ(status("/api/locks/x"), 400) << "which of them?";
  EXPECT_TRUE(document("/api/locks/x?engine=one")["holders"].empty());
  EXPECT_EQ(document("/api/locks/x?engine=two")["holders"].size(), 1U);
  EXPECT_TRUE(document("/api/locks?engine=one")["locks"].empty());
  EXPECT_EQ(metric("holdfast_engine_held{engine=\"one\"}"), "0");
  EXPECT_EQ(metric("holdfast_engine_held{engine=\"two\"}"), "1");
}

}  // namespace
}  // namespace holdfast::cli_test
