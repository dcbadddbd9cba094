// holdfast latch: the count-down latch.
#include "cli/commands.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"

#include <holdfast/latch.hpp>

#include <optional>
#include <string>

namespace holdfast::cli {

namespace {

int refused(const std::string& what, const engine& engine, const error& why) {
  complaint said = from_engine(what, engine.to.engine, "latch", why);
  // The two negative answers of a latch itself.
  if (why == errc::conflict || why == errc::not_held) said.code = exit_code::no;
  return tell(said);
}

int change(const latch_arguments& what, const std::string& name, const engine& engine) {
  holdfast::latch latch(engine.client, what.name);
  if (what.what == latch_arguments::verb::set) {
    const auto done = latch.set(what.count);
    return done ? exit_code::ok : refused(name + " cannot be set", engine, done.error());
  }
  if (what.what == latch_arguments::verb::down) {
    std::optional<countdown_id> id;
    if (!what.id.empty()) id = countdown_id::from(what.id);
    const auto left = latch.count_down(what.count, id);
    if (!left) return refused(name + " cannot be counted down", engine, left.error());
    return print_all(std::to_string(*left) + "\n");
  }
  const auto count = latch.count();
  if (!count) return refused(name + " cannot be read", engine, count.error());
  return print_all((*count ? std::to_string(**count) : "unset") + "\n");
}

int wait(const context& context, const latch_arguments& what, const std::string& name) {
  signal_inbox inbox;  // before any thread exists
  interruption interruption(inbox);
  const auto engine = open_engine(context);
  if (!engine) return tell(engine.error());
  if (what.wait.wait > duration{0}) {  // a single look reports it by itself
    if (const auto problem = engine->first_contact(what.name)) return tell(*problem);
  }
  const holdfast::latch latch(engine->client, what.name);
  const auto done = latch.wait(what.wait, interruption.waiting());
  const auto signal = interruption.over();
  if (done) return exit_code::ok;
  if (signal) return withdrawn(*signal, name, *engine, "latch");
  const bool late = done.error() == errc::timed_out || done.error() == errc::busy;
  std::string failed = "cannot wait for " + name;
  if (late && what.wait.wait > duration{0}) {
    failed = name + " did not reach zero within " + to_text(what.wait.wait);
  } else if (late) {
    failed = name + " is not at zero";
  }
  return engine->refused(failed, "latch", done.error());
}

}  // namespace

int latch(const context& context, const latch_arguments& what) {
  const std::string name = "the latch '" + what.name + "'";
  if (what.what == latch_arguments::verb::wait) return wait(context, what, name);
  const auto engine = open_engine(context);
  if (!engine) return tell(engine.error());
  return change(what, name, *engine);
}

}  // namespace holdfast::cli
