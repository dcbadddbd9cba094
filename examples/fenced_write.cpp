// What a lock alone cannot do: a holder that was paused past the end of its lease writes late. The
// fence lets the resource refuse it.
#include <holdfast/holdfast.hpp>

#include <iostream>
#include <string>

using namespace std::chrono_literals;

// The resource keeps the greatest fence it has seen: a column, a header, a file's first line.
class fenced_register {
 public:
  bool write(const std::string& value, holdfast::fence_token fence) {
    const bool none = fence == holdfast::fence_token{};  // no grant has it
    if (none || fence < greatest_) return false;
    greatest_ = fence;
    value_ = value;
    return true;
  }
  [[nodiscard]] const std::string& value() const { return value_; }

 private:
  holdfast::fence_token greatest_;
  std::string value_;
};

int main(int argc, char** argv) {
  const auto client = holdfast::client::open(argc > 1 ? argv[1] : "memory:").value();
  fenced_register price;

  // A lease that nobody renews stands for a process that was stopped, or swapped out.
  holdfast::mutex paused(client, "price", {.ttl = 200ms, .renew = holdfast::renew::never});
  const auto old = paused.acquire().value();
  holdfast::mutex lock(client, "price");
  const auto current = lock.acquire().value();  // waits until the old lease has ended

  const bool newer = price.write("12.50", current.fence());
  const bool late = price.write("9.99", old.fence());
  std::cout << "price " << price.value() << ", late write " << (late ? "taken" : "refused") << '\n';
  return newer && !late ? 0 : 1;
}
