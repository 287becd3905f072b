// SPDX-License-Identifier: MIT
// The ranks of a simulated cluster have an error message each, although they
// are in one process: each fails, waits for its neighbours, which fail too, and
// still finds its own message.
#include <stdio.h>
#include <string.h>

#include <laconic/laconic.h>

static lac_status swap_with_neighbours(lac_transport *t)
{
    const uint32_t rank = lac_transport_rank(t);
    const uint32_t world = lac_transport_world(t);
    const lac_send send = {.peer = (rank + 1) % world, .data = "a", .len = 1};
    lac_receive receive = {.peer = (rank + world - 1) % world};
    return lac_transport_exchange(t, &send, 1, &receive, 1, 0);
}

int main(void)
{
    lac_transport *t = NULL;
    if (lac_transport_join(&t, "smpi", NULL, LAC_RANK_ANY, LAC_RANK_ANY) !=
        LAC_OK) {
        (void)fprintf(stderr, "%s\n", lac_error_message());
        return 1;
    }
    char expected[64];
    (void)snprintf(
        expected, sizeof(expected), "the failure of worker %u",
        lac_transport_rank(t));
    (void)!lac_fail(LAC_ERR_INVALID, "%s", expected);
    const lac_status status = swap_with_neighbours(t);
    const bool good =
        status == LAC_OK && strcmp(lac_error_message(), expected) == 0;
    (void)printf(
        "worker %u: %s\n", lac_transport_rank(t),
        good ? "good" : lac_error_message());
    lac_transport_leave(t);
    return 0;
}
