// SPDX-License-Identifier: MIT
// Addresses of workers as text, and sockets that listen on them.
#define _POSIX_C_SOURCE 200809L
#include "lac_test.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "transport/tcp/address.h"

typedef struct address_case {
    const char *text;
    const char *host; // NULL: no address
    uint16_t port;
} address_case;

static const address_case cases[] = {
    {"127.0.0.1:29500", "127.0.0.1", 29500},
    {"10.0.0.7", "10.0.0.7", 0},
    {"node-3.cluster_a.example:1", "node-3.cluster_a.example", 1},
    {"node:65535", "node", 65535},
    {"node:00080", "node", 80},
    {"[::1]:29500", "::1", 29500},
    {"[fe80::1%eth0]:9", "fe80::1%eth0", 9},
    {"[2001:db8::7]", "2001:db8::7", 0},
    {"[127.0.0.1]:5", "127.0.0.1", 5},

    {"", NULL, 0},
    {":80", NULL, 0},
    {"node:", NULL, 0},
    {"node:0", NULL, 0},
    {"node:65536", NULL, 0},
    {"node:655350", NULL, 0},
    {"node:+80", NULL, 0},
    {"node:-1", NULL, 0},
    {"node: 80", NULL, 0},
    {"node:80 ", NULL, 0},
    {"node:0x50", NULL, 0},
    {"node:80:81", NULL, 0},
    {"no de:80", NULL, 0},
    {"n\x1b[2J:80", NULL, 0},
    {"n\xc3\xb6:80", NULL, 0},
    {"node/path:80", NULL, 0},
    {"http://node:80", NULL, 0},
    {"::1", NULL, 0},
    {"fe80::1:80", NULL, 0},
    {"[::1", NULL, 0},
    {"[]:80", NULL, 0},
    {"[::1]80", NULL, 0},
    {"[::1]:", NULL, 0},
    {"[::1]:0", NULL, 0},
    {"[[::1]]:80", NULL, 0},
    {"[::1]:80]", NULL, 0},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static void addresses_are_parsed_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        const address_case *const c = &cases[i];
        laci_tcp_address address;
        const bool good =
            laci_tcp_address_parse(c->text, strlen(c->text), &address);
        if (good != (c->host != NULL)) {
            fail_msg("%s: parsed is %d", c->text, good);
        }
        if (good) {
            assert_string_equal(address.host, c->host);
            assert_int_equal(address.port, c->port);
        }
    }
}

static void addresses_are_read_as_they_are_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        laci_tcp_address address, again;
        char text[LACI_TCP_HOST + 16];
        if (cases[i].host == NULL || cases[i].port == 0) {
            continue;
        }
        assert_true(laci_tcp_address_parse(
            cases[i].text, strlen(cases[i].text), &address));
        laci_tcp_address_write(&address, text, sizeof(text));
        assert_true(laci_tcp_address_parse(text, strlen(text), &again));
        assert_string_equal(again.host, address.host);
        assert_int_equal(again.port, address.port);
    }
}

static void a_nul_is_no_host(void **state)
{
    (void)state;
    laci_tcp_address address;
    assert_false(laci_tcp_address_parse("no\0de:80", 8, &address));
    assert_false(laci_tcp_address_parse("node:8\0", 7, &address));
}

static void hosts_have_at_most_255_bytes(void **state)
{
    (void)state;
    char text[LACI_TCP_HOST + 8];
    laci_tcp_address address;
    memset(text, 'a', sizeof(text));
    assert_true(laci_tcp_address_parse(text, LACI_TCP_HOST - 1, &address));
    assert_int_equal(strlen(address.host), LACI_TCP_HOST - 1);
    assert_false(laci_tcp_address_parse(text, LACI_TCP_HOST, &address));
}

static void listening_takes_a_free_port(void **state)
{
    (void)state;
    const laci_tcp_address every = {.port = 0};
    int first = -1, second = -1;
    uint16_t port = 0, other = 0;
    assert_ok(
        laci_tcp_listen_on(&laci_transport_services, &every, &first, &port));
    assert_true(port != 0);
    const laci_tcp_address taken = {.host = "127.0.0.1", .port = port};
    char message[128];
    (void)snprintf(
        message, sizeof(message),
        "tcp: cannot listen on 127.0.0.1 port %u: Address already in use",
        port);
    assert_fails(
        laci_tcp_listen_on(&laci_transport_services, &taken, &second, &other),
        LAC_ERR_INVALID, message);
    assert_int_equal(second, -1);
    assert_int_equal(close(first), 0);
}

static void an_address_of_another_machine_is_refused(void **state)
{
    (void)state;
    const laci_tcp_address address = {.host = "192.0.2.1", .port = 29500};
    int s = -1;
    uint16_t port = 0;
    assert_fails(
        laci_tcp_listen_on(&laci_transport_services, &address, &s, &port),
        LAC_ERR_INVALID,
        "tcp: cannot listen on 192.0.2.1 port 29500: Cannot assign requested "
        "address");
}

static void names_that_do_not_resolve_have_a_reason(void **state)
{
    (void)state;
    const laci_tcp_address nowhere = {.host = "no-such.invalid", .port = 1};
    const laci_tcp_address here = {.host = "127.0.0.1", .port = 1};
    const char *reason = NULL;
    assert_null(laci_tcp_resolve(&nowhere, &reason));
    assert_non_null(reason);
    assert_true(reason[0] != '\0');
    laci_tcp_targets *const targets = laci_tcp_resolve(&here, &reason);
    assert_non_null(targets);
    freeaddrinfo(targets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_parsed_or_refused),
        cmocka_unit_test(addresses_are_read_as_they_are_written),
        cmocka_unit_test(a_nul_is_no_host),
        cmocka_unit_test(hosts_have_at_most_255_bytes),
        cmocka_unit_test(listening_takes_a_free_port),
        cmocka_unit_test(an_address_of_another_machine_is_refused),
        cmocka_unit_test(names_that_do_not_resolve_have_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
