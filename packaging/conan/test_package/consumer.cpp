#include <holdfast/holdfast.hpp>

#include <iostream>
#include <mutex>

int main() {
  const auto locks = holdfast::client::open("memory:").value();
  holdfast::mutex stock(locks, "stock");
  const std::scoped_lock held(stock);
  std::cout << "holdfast: locked with fence " << stock.lease().fence().value() << '\n';
}
