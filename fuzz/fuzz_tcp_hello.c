// SPDX-License-Identifier: MIT
// Arbitrary bytes as HELLO, and changes of a correct one: only that one is
// accepted, and every other has a reason.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "transport/tcp/hello.h"

enum { AT_INCARNATION = 24, INCARNATION = 8 };

static laci_tcp_hello make_expected(void)
{
    laci_tcp_hello hello = {
        .encryption = true, .world = 3, .sender = 2, .receiver = 1};
    memset(hello.session, 5, sizeof(hello.session));
    memset(hello.binding, 6, sizeof(hello.binding));
    return hello;
}

static void read_hello(const uint8_t *bytes)
{
    uint8_t correct[LACI_TCP_HELLO];
    char reason[LACI_TCP_REASON] = "";
    laci_tcp_hello expected = make_expected();
    uint8_t *const copy = fuzz_copy(bytes, LACI_TCP_HELLO);
    const bool good = laci_tcp_hello_read(copy, &expected, reason);
    laci_tcp_hello_write(&expected, correct);
    memcpy(correct + AT_INCARNATION, bytes + AT_INCARNATION, INCARNATION);
    fuzz_require(
        good == (memcmp(bytes, correct, sizeof(correct)) == 0),
        "another HELLO is accepted, or the correct one is not");
    fuzz_require(good == (reason[0] == '\0'), "no reason");
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[LACI_TCP_HELLO] = {0};
    const laci_tcp_hello correct = make_expected();
    memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
    read_hello(bytes);
    // Pairs of a place and a change.
    laci_tcp_hello_write(&correct, bytes);
    for (size_t i = 0; i + 1 < size; i += 2) {
        bytes[data[i] % sizeof(bytes)] ^= data[i + 1];
    }
    read_hello(bytes);
    return 0;
}
