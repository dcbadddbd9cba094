/* The C interface as a C program sees it: compiled by a C compiler, linked as a C program would be. Broken if it
 * fails: every language that is built on <holdfast/holdfast.h>. With the name of a group only that is run. */
#include "check.h"

static void run(const char* group, const struct test* tests) {
  for (; tests->name != NULL; ++tests) {
    printf("%s.%s\n", group, tests->name);
    fflush(stdout);
    tests->run();
  }
}

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : "";
  if (*only == '\0' || strcmp(only, "locks") == 0) run("locks", lock_tests);
  if (*only == '\0' || strcmp(only, "async") == 0) run("async", async_tests);
  if (*only == '\0' || strcmp(only, "operators") == 0) run("operators", operator_tests);
  if (*only == '\0' || strcmp(only, "tokens") == 0) run("tokens", token_tests);
  return 0;
}
