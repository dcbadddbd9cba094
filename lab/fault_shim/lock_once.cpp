// lock_once URL NAME: opens a client, takes a lock, gives it back, closes. For the sweep over
// failing system calls (failing_calls.cpp). Exit status: 0 on success, 1 for an error value, which
// is printed; plus 10 if no call failed. Everything else is a defect.
#include <holdfast/client.hpp>
#include <holdfast/mutex.hpp>

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace {

using namespace std::chrono_literals;

template <class Function>
Function* of_shim(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

int told(const holdfast::error& why) {
  std::printf("%s\n", why.message().c_str());
  return 1;
}

int lock_once(const char* url, const char* name, int (*struck)()) {
  auto opened = holdfast::client::open(url);
  if (!opened) return told(opened.error());
  holdfast::mutex lock(*opened, name, {.ttl = 10s});
  auto held = lock.acquire({.wait = 2s});
  if (!held && struck() == 0) {  // nothing has failed: the machine is slow
    held = lock.acquire({.wait = 30s});
  }
  if (!held) return told(held.error());
  const auto released = held->release();
  return released ? 0 : told(released.error());
}

}  // namespace

int main(int count, char** words) {
  auto* const arm = of_shim<void()>("holdfast_faults_arm");
  auto* const struck = of_shim<int()>("holdfast_faults_struck");
  if (count != 3 || arm == nullptr || struck == nullptr) return 2;
  arm();
  const int outcome = lock_once(words[1], words[2], struck);
  return outcome + (struck() == 0 ? 10 : 0);
}
