/* The first example in C: a lock by name, with a fence for whatever it protects. */
#include <holdfast/holdfast.h>

#include <inttypes.h>
#include <stdio.h>

int main(int argc, char** argv) {
  hf_error error = {.size = sizeof error};
  hf_client* client = NULL;
  hf_lock* stock = NULL;
  hf_lease* lease = NULL;
  hf_status status = hf_client_open(argc > 1 ? argv[1] : "memory:", HF_Z, NULL, &client, &error);
  if (status == HF_OK) status = hf_mutex_new(client, "stock/42", HF_Z, NULL, &stock, &error);
  if (status == HF_OK) status = hf_acquire(stock, HF_SECONDS(1), NULL, NULL, &lease, &error);
  if (status == HF_OK) {
    printf("order written with fence %" PRIu64 "\n", hf_lease_fence(lease));
    status = hf_release(lease, &error); /* or hf_lease_free, without the answer */
  }
  if (status == HF_TIMED_OUT) {
    printf("too busy\n");
  } else if (status != HF_OK) {
    fprintf(stderr, "%s\n", error.message);
  }
  hf_lease_free(lease);
  hf_lock_free(stock);
  hf_client_free(client);
  return status == HF_OK ? 0 : 1;
}
