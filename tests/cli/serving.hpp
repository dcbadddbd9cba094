// holdfast serve, queried by curl.
#pragma once

#include "cli/fixture.hpp"

#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>

namespace holdfast::cli_test {

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
  nlohmann::json document(const std::string& path, const words& options = {}) {
    const web_answer got = get(path, options);
    EXPECT_EQ(got.status, 200) << path << ": " << got.body;
    return got.status == 200 ? nlohmann::json::parse(got.body) : nlohmann::json();
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
      const nlohmann::json all = document("/api/locks");
      for (const nlohmann::json& one : all["locks"]) {
        if (one["name"] == name && one["holders"] == 1) return true;
      }
      return false;
    });
  }

  const std::string file_ = "sqlite:" + home_ / "locks.db";
  std::string address_;
};

}  // namespace holdfast::cli_test
