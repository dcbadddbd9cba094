// holdfast serve, queried by curl: every address, on three engines; who is refused; limits; engines
// that go away and come back.
#include "cli/fixture.hpp"
#include "support/free_port.hpp"

#ifdef HOLDFAST_WITH_POSTGRESQL
#include "support/postgresql_server.hpp"
#endif
#ifdef HOLDFAST_WITH_REDIS
#include "support/redis_server.hpp"
#endif

#include <nlohmann/json.hpp>
#include <signal.h>

#include <functional>
#include <memory>
#include <string>

namespace holdfast::cli_test {
namespace {

using nlohmann::json;

struct web_answer {
  int status = 0;
  std::string head;
  std::string body;
};

class serve : public command_line {
 protected:
  // Runs until the test ends; its address is known when this returns.
  process serve_at(const words& urls, const words& options = {}) {
    words line;
    for (const std::string& url : urls) line.insert(line.end(), {"--url", url});
    line.insert(line.end(), {"serve", "--listen", "127.0.0.1:0"});
    line.insert(line.end(), options.begin(), options.end());
    process started = begin(line);
    if (!started.complains("http://127.0.0.1:")) throw std::runtime_error(started.err());
    const std::string said = started.err();
    const auto at = said.find("http://");
    address_ = said.substr(at, said.find('/', at + 7) - at);
    return started;
  }
  words curl(const std::string& path, const words& options = {}) const {
    words line{"curl", "--silent", "--include", "--no-buffer", "--path-as-is", "--max-time", "120"};
    line.insert(line.end(), options.begin(), options.end());
    line.push_back(address_ + path);
    return line;
  }
  web_answer get(const std::string& path, const words& options = {}) {
    const std::string text = shell_.run(curl(path, options)).out;
    const auto split = text.find("\r\n\r\n");
    if (!text.starts_with("HTTP/1.1 ") || split == std::string::npos) return {0, text, {}};
    return {std::stoi(text.substr(9, 3)), text.substr(0, split), text.substr(split + 4)};
  }
  int status(const std::string& path, const words& options = {}) {
    return get(path, options).status;
  }
  json document(const std::string& path, const words& options = {}) {
    const web_answer got = get(path, options);
    EXPECT_EQ(got.status, 200) << path << ": " << got.body;
    return got.status == 200 ? json::parse(got.body) : json();
  }
  // A line of /metrics: 'holdfast_engine_up{engine="redis"}'; empty: there is none.
  std::string metric(const std::string& line) {
    const std::string all = "\n" + get("/metrics").body;
    const auto at = all.find("\n" + line + " ");
    if (at == std::string::npos) return {};
    const auto value = at + line.size() + 2;
    return all.substr(value, all.find('\n', value) - value);
  }
  bool listed(const std::string& name) {
    return eventually([&] {
      const json all = document("/api/locks");
      for (const json& one : all["locks"]) {
        if (one["name"] == name && one["holders"] == 1) return true;
      }
      return false;
    });
  }

  const std::string file_ = "sqlite:" + home_ / "locks.db";
  std::string address_;
};

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
  for (const words& options :
       std::vector<words>{{"--listen", "0.0.0.0:0"},
                          {"--listen", "[::]:0"},
                          {"--listen", "127.0.0.1"},
                          {"--listen", ":80"},
                          {"--listen", "127.0.0.1:65536"},
                          {"--allow-revoke"},
                          {"--token-file", home_ / "missing"},
                          {"--token-file", home_ / "short"},
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

TEST_F(serve, more_streams_than_there_is_room_for_are_refused_and_the_rest_works) {
  // Broken: a browser with many tabs keeps Prometheus out.
  process server = serve_at({file_});
  std::vector<process> streams;
  for (int i = 0; i < 32; ++i) streams.push_back(shell_.start(curl("/api/events")));
  for (const process& one : streams) ASSERT_TRUE(one.says("event: stats")) << one.out();
  const web_answer more = get("/api/events");
  EXPECT_EQ(more.status, 503) << more.body;
  EXPECT_NE(more.head.find("Retry-After"), std::string::npos);
  EXPECT_EQ(metric("holdfast_serve_streams"), "32");
  streams.front().send(SIGTERM);
  streams.front().end();
  EXPECT_TRUE(eventually([&] { return metric("holdfast_serve_streams") == "31"; }));
  // It ends cleanly although streams are open.
  server.send(SIGTERM);
  EXPECT_EQ(server.end().code, 0);
}

TEST_F(serve, clients_that_say_nothing_are_bounded_and_end) {
  // Broken: idle connections use up descriptors and threads until nothing is answered.
  process server = serve_at({file_});
  const std::string port = address_.substr(address_.rfind(':') + 1);
  const answer got = shell_.run(
      {"python3", "-c",
       "import socket, sys\n"
       "all = [socket.create_connection(('127.0.0.1', int(sys.argv[1])), 120) for _ in range(64)]\n"
       "late = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 120)\n"
       "print(late.recv(100).split(b'\\r\\n')[0].decode())\n"
       "print([one.recv(100) for one in all[:8]].count(b''))\n",
       port});
  EXPECT_EQ(got.code, 0) << got.err;
  EXPECT_NE(got.out.find("503"), std::string::npos) << got.out;
  EXPECT_TRUE(eventually([&] { return status("/healthz") == 200; }));
  server.send(SIGINT);
  EXPECT_EQ(server.end().code, 0);
}

TEST_F(serve, a_busy_name_keeps_no_more_than_its_share) {
  // Broken: memory grows with every event.
  const process server = serve_at({file_});
  ASSERT_TRUE(eventually([&] { return metric("holdfast_engine_up{engine=\"sqlite\"}") == "1"; }));
  ASSERT_EQ(type({"--url", file_, "bench", "--locks", "same", "--duration", "500ms"}).code, 0);
  ASSERT_TRUE(eventually([&] {
    const std::string seen =
        metric("holdfast_engine_events_total{engine=\"sqlite\",event=\"released\"}");
    return !seen.empty() && std::stol(seen) > 50;
  }));
  EXPECT_EQ(metric("holdfast_serve_past_events"), "50");
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

#ifdef HOLDFAST_WITH_REDIS
TEST_F(serve, an_engine_that_is_away_is_reported_and_seen_again_when_it_is_back) {
  // Broken: old numbers for an engine that does not answer, or none after it does again.
  test::redis_server redis(
      {.arguments = {"--requirepass", "secret-word"}, .admin = {"-a", "secret-word"}});
  const std::string url = "redis://:secret-word@127.0.0.1:" + std::to_string(redis.port());
  redis.kill();
  const process server = serve_at({"main=" + url});
  ASSERT_TRUE(server.complains("engine main does not answer"));
  EXPECT_EQ(status("/healthz"), 200) << "it serves";
  EXPECT_EQ(metric("holdfast_engine_up{engine=\"main\"}"), "0");
  EXPECT_EQ(metric("holdfast_engine_held{engine=\"main\"}"), "")
      << "no number rather than a wrong one";
  EXPECT_EQ(status("/api/locks/x"), 503);
  const json away = document("/api/locks");
  EXPECT_EQ(away["engines"][0]["up"], false);
  EXPECT_NE(away["engines"][0]["trouble"], "");
  redis.start();
  ASSERT_TRUE(server.complains("engine main answers again"));
  const process holder = hold("x", {"--url", url});
  ASSERT_TRUE(listed("x"));
  // Once it listens again: what happened before that is not seen.
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(type({"--url", url, "run", "y", "--", "true"}).code, 0);
    return metric("holdfast_engine_events_total{engine=\"main\",event=\"granted\"}") != "0";
  })) << "events, too";
  const std::string shown = get("/api/engines").body + get("/metrics").body + server.err();
  EXPECT_EQ(shown.find("secret-word"), std::string::npos) << shown;
}
#endif

}  // namespace
}  // namespace holdfast::cli_test
