#include "support/engine_bench.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::test {

void event_log::on_event(const event& event) {
  kinds.push_back(event.kind);
  took.push_back(event.took);
  std::string line(to_string(event.kind));
  line += ' ';
  line += event.name;
  if (event.cause != nullptr) line += ": " + std::string(describe(event.cause->code));
  lines.push_back(std::move(line));
}

std::string event_log::take() {
  std::string text;
  for (const std::string& line : std::exchange(lines, {})) {
    text += (text.empty() ? "" : ", ") + line;
  }
  return text;
}

std::size_t event_log::count(event_kind kind) const {
  return static_cast<std::size_t>(std::count(kinds.begin(), kinds.end(), kind));
}

std::string question::state() const {
  if (answers == 0) return "waiting";
  if (answers > 1) return "answered " + std::to_string(answers) + " times";
  if (refusal) return std::string(describe(refusal->code));
  return granted ? "granted " + std::to_string(granted->fence().value()) : "given back";
}

core::request request_for(const std::string& name, duration wait) {
  core::request request;
  request.resource = {"", name};
  request.wait = wait;
  return request;
}

engine_bench::engine_bench(core::engine_settings settings)
    : runtime(std::make_shared<manual_runtime>()), store(std::make_shared<fake_store>()) {
  settings.observer = events;
  engine = std::make_shared<core::engine>(runtime, store, std::move(settings));
}

engine_bench::engine_bench(std::shared_ptr<manual_runtime> shared, std::shared_ptr<spi::store> with,
                           core::engine_settings settings)
    : runtime(std::move(shared)) {
  settings.observer = events;
  engine = std::make_shared<core::engine>(runtime, std::move(with), std::move(settings));
}

engine_bench::~engine_bench() {
  runtime->set_forked(false);  // a child leaves its memory to the system; a test must not
  if (engine) engine->close(1ms, [](core::engine::abandoned) {});
  if (store) store->close();
  runtime->run_for(1s);
}

question_ptr engine_bench::ask(core::request request) {
  auto asked = std::make_shared<question>();
  asked->handle =
      engine->acquire(std::move(request), [asked](result<std::shared_ptr<core::hold>> answer) {
        ++asked->answers;
        if (answer) {
          asked->granted = std::move(*answer);
        } else {
          asked->refusal = std::move(answer.error());
        }
      });
  return asked;
}

question_ptr engine_bench::ask(const std::string& name, duration wait) {
  return ask(request_for(name, wait));
}

std::shared_ptr<std::string> engine_bench::release(const question& from) {
  auto said = std::make_shared<std::string>("nothing yet");
  from.granted->release([said](result<void> answer) {
    *said = answer ? "ok" : std::string(describe(answer.error().code));
  });
  return said;
}

}  // namespace holdfast::test
