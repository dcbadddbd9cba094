
#include "stores/redis/client/server_error.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::redis {

namespace {

struct meaning {
  std::string_view code;
  trouble what;
};

constexpr std::array meanings{
    meaning{"LOADING", trouble::passing},
    meaning{"BUSY", trouble::passing},
    meaning{"TRYAGAIN", trouble::passing},
    meaning{"CLUSTERDOWN", trouble::passing},
    meaning{"MASTERDOWN", trouble::passing},
    meaning{"MISCONF", trouble::passing},
    meaning{"NOREPLICAS", trouble::passing},
    meaning{"OOM", trouble::passing},
    meaning{"UNBLOCKED", trouble::passing},
    meaning{"NOTREADY", trouble::passing},
    meaning{"READONLY", trouble::demoted},
    meaning{"NOPERM", trouble::denied},
    meaning{"NOAUTH", trouble::denied},
    meaning{"WRONGPASS", trouble::denied},
    meaning{"DENIED", trouble::denied},
    meaning{"MOVED", trouble::moved},
    meaning{"ASK", trouble::ask},
    meaning{"NOSCRIPT", trouble::no_script},
    meaning{"WRONGTYPE", trouble::wrong_type},
};

struct remedy {
  std::string_view code;
  std::string_view text;
};

constexpr std::array remedies{
    remedy{"OOM", "the server's maxmemory is reached: raise it, or free memory"},
    remedy{"MISCONF", "the server cannot persist: look at its disk and log"},
    remedy{"NOREPLICAS", "fewer replicas than min-replicas-to-write: look at replication"},
    remedy{"BUSY", "a script runs too long: SCRIPT KILL ends it, if it has not written"},
};

std::string_view first_word(std::string_view text) noexcept {
  return text.substr(0, text.find(' '));
}

// Redis 6.2 wraps the error of a call: "ERR Error running script (...): @user_script: 1: OOM ...".
std::string_view unwrapped(std::string_view text) noexcept {
  if (!text.starts_with("ERR Error running script")) return text;
  for (const meaning& one : meanings) {
    for (auto at = text.find(one.code); at != std::string_view::npos;
         at = text.find(one.code, at + 1)) {
      const char before = text[at - 1];
      const std::size_t end = at + one.code.size();
      if ((before == ' ' || before == '-') && (end == text.size() || text[end] == ' ')) {
        return text.substr(at);
      }
    }
  }
  return text;
}

bool refused_in_script(std::string_view text) noexcept {
  return text.find("The user executing the script can't") != std::string_view::npos;
}

// Without arguments that the server repeats, and without the place in the script.
std::string_view without_arguments(std::string_view text) noexcept {
  for (const std::string_view mark : {", with args beginning with", " script: "}) {
    text = text.substr(0, text.find(mark));
  }
  constexpr std::size_t longest = 200;
  return text.substr(0, longest);
}

std::string grant_for(std::string_view text, std::string_view verb, const grants& wanted) {
  if (text.starts_with("NOAUTH"))
    return "give the password by --password-file, $HOLDFAST_PASSWORD or the URL";
  if (text.starts_with("WRONGPASS")) return "wrong user or password, or the user is disabled";
  if (text.starts_with("DENIED")) return "protected mode: bind or authenticate the server";
  if (text.find("channel") != std::string_view::npos) {
    return "grant the channels: " + (wanted.channels.empty() ? "&pattern" : wanted.channels);
  }
  if (text.find("key") != std::string_view::npos) {
    return "grant the keys: " + (wanted.keys.empty() ? "~pattern" : wanted.keys);
  }
  if (refused_in_script(text)) return "grant the commands that the script calls";
  std::string_view denied = verb;
  if (const auto open = text.find('\''); open != std::string_view::npos) {
    const auto close = text.find('\'', open + 1);
    if (close != std::string_view::npos) denied = text.substr(open + 1, close - open - 1);
  }
  std::string lower(denied);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return "grant the command: +" + lower;
}

errc code_of(trouble what) noexcept {
  switch (what) {
    case trouble::denied:
      return errc::denied;
    case trouble::wrong_type:
      return errc::name_conflict;
    case trouble::unknown_verb:
      return errc::unsupported;
    default:
      return errc::unavailable;
  }
}

}  // namespace

trouble classify(const reply& answer) noexcept {
  const std::string_view text = unwrapped(answer.text);
  const auto known = std::ranges::find(meanings, first_word(text), &meaning::code);
  if (known != meanings.end()) return known->what;
  if (refused_in_script(text)) return trouble::denied;
  if (text.starts_with("ERR max number of clients reached")) return trouble::passing;
  if (text.starts_with("ERR unknown command")) return trouble::unknown_verb;
  if (text.starts_with("ERR unknown subcommand")) return trouble::unknown_verb;
  return trouble::other;
}

error to_error(const reply& answer, std::string_view verb, std::string_view where,
               const grants& wanted) {
  const trouble what = classify(answer);
  const std::string_view text = unwrapped(answer.text);
  std::string detail = std::string(where) + ", " + std::string(verb) + ": ";
  detail += without_arguments(text);
  if (what == trouble::denied) detail += "; " + grant_for(text, verb, wanted);
  const auto known = std::ranges::find(remedies, first_word(text), &remedy::code);
  if (known != remedies.end()) detail += "; " + std::string(known->text);
  return {code_of(what), std::move(detail)};
}

}  // namespace holdfast::redis
