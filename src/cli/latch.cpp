// holdfast latch: the count-down latch.
#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/log.hpp"
#include "cli/number_text.hpp"
#include "cli/printer.hpp"
#include "cli/signal_inbox.hpp"

#include <holdfast/latch.hpp>

#include <memory>
#include <optional>
#include <string>

namespace holdfast::cli {

namespace {

int refused(const std::string& what, const std::string& engine, const error& why) {
  complaint said = from_engine(what, engine, "latch", why);
  // The two noes that a latch itself can say.
  if (why == errc::conflict || why == errc::not_held) said.code = exit_code::no;
  return tell(said);
}

int change(const latch_arguments& what, holdfast::latch& latch, const std::string& engine) {
  const std::string name = "the latch '" + what.name + "'";
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
  const std::string text = *count ? std::to_string(**count) : "unset";
  return print_all(text + "\n");
}

int wait(const context& context, const latch_arguments& what, const address& to) {
  signal_inbox inbox;  // before any thread exists
  interruption interruption(inbox);
  const auto client = connect(context, to, std::make_shared<log>(context.global.level));
  if (!client) return tell(client.error());
  if (what.wait.wait > duration{0}) {  // a single look says it by itself
    if (const auto problem = first_contact(*client, to, what.name)) return tell(*problem);
  }
  const holdfast::latch latch(*client, what.name);
  const auto done = latch.wait(what.wait, interruption.waiting());
  const auto ended_by = interruption.over();
  if (done) return exit_code::ok;
  const std::string name = "the latch '" + what.name + "'";
  if (ended_by) {
    tell("ended by " + signal_name(*ended_by) + " while waiting for " + name + " (" + to.engine +
         ", latch, withdrawn)");
    return exit_code::signalled + *ended_by;
  }
  if (done.error() == errc::timed_out || done.error() == errc::busy) {
    return tell(from_engine(name + " did not reach zero within " + to_text(what.wait.wait),
                            to.engine, "latch", done.error()));
  }
  return tell(from_engine("cannot wait for " + name, to.engine, "latch", done.error()));
}

}  // namespace

int latch(const context& context, const latch_arguments& what) {
  const auto to = find_address(context);
  if (!to) return tell(to.error());
  if (what.what == latch_arguments::verb::wait) return wait(context, what, *to);
  const auto client = connect(context, *to, std::make_shared<log>(context.global.level));
  if (!client) return tell(client.error());
  holdfast::latch latch(*client, what.name);
  return change(what, latch, to->engine);
}

}  // namespace holdfast::cli
