// SPDX-License-Identifier: MIT
// The peers file: its lines, and a message with the number of the line for
// everything that can be wrong with one.
#include "lac_test.h"

#include <stdio.h>
#include <string.h>

#include "transport/tcp/roster.h"

// Three keys: 32 bytes 0, 1 and 2.
#define KEY_0 "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define KEY_1 "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
#define KEY_2 "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="

static const laci_services *const services = &laci_transport_services;

static lac_status parse(const char *text, laci_tcp_roster *out)
{
    return laci_tcp_roster_parse(services, "peers", text, strlen(text), out);
}

static void assert_refused(const char *text, const char *message)
{
    laci_tcp_roster roster = {0};
    assert_fails(parse(text, &roster), LAC_ERR_INVALID, message);
    assert_null(roster.entries);
}

static void a_line_is_a_worker(void **state)
{
    (void)state;
    laci_tcp_roster roster;
    assert_ok(parse(
        "alice 10.0.0.1:29500 " KEY_0 "\n"
        "bob [::1]:29501 " KEY_1 "\n"
        "carol host.example:1 " KEY_2 "\n",
        &roster));
    assert_int_equal(roster.count, 3);
    assert_string_equal(roster.entries[0].name, "alice");
    assert_string_equal(roster.entries[0].address.host, "10.0.0.1");
    assert_string_equal(roster.entries[1].address.host, "::1");
    assert_int_equal(roster.entries[1].address.port, 29501);
    for (uint32_t rank = 0; rank < 3; rank++) {
        uint8_t key[LACI_TCP_KEY];
        memset(key, (int)rank, sizeof(key));
        assert_memory_equal(roster.entries[rank].key, key, sizeof(key));
        assert_int_equal(laci_tcp_roster_find(&roster, key), rank);
    }
    const uint8_t unknown[LACI_TCP_KEY] = {9};
    assert_int_equal(laci_tcp_roster_find(&roster, unknown), LAC_RANK_ANY);
    laci_tcp_roster_release(services, &roster);
}

static void blank_lines_and_comments_hold_no_rank(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "a h:1 " KEY_0 "\nb h:2 " KEY_1,
        "# two\n\na h:1 " KEY_0 "\n \t \n  # indented\nb h:2 " KEY_1 "\n\n",
        "a h:1 " KEY_0 "\r\n\r\nb h:2 " KEY_1 "\r\n",
        "\ta\th:1\t" KEY_0 " \n   b   h:2   " KEY_1 "   ",
        "#a h:3 " KEY_2 "\na h:1 " KEY_0 "\nb h:2 " KEY_1 "\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        laci_tcp_roster roster;
        assert_ok(parse(texts[i], &roster));
        assert_int_equal(roster.count, 2);
        assert_string_equal(roster.entries[0].name, "a");
        assert_string_equal(roster.entries[1].name, "b");
        assert_int_equal(roster.entries[1].address.port, 2);
        laci_tcp_roster_release(services, &roster);
    }
}

static void a_wrong_line_is_named(void **state)
{
    (void)state;
    static const char long_name[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                    "aaaaaaaaaaaaaaaaaaaaaa h:1 " KEY_0;
    assert_refused("", "peers: no worker, expected a line for each");
    assert_refused("#\n\n", "peers: no worker, expected a line for each");
    assert_refused(
        "a h:1 " KEY_0 "\n\n# b\nb\n",
        "peers:4: the address is '', expected host:port or [IPv6]:port; a line "
        "is `name address:port key`");
    assert_refused(
        "a h " KEY_0,
        "peers:1: the address is 'h', expected host:port or [IPv6]:port; a "
        "line is `name address:port key`");
    assert_refused(
        "a h:65536 " KEY_0,
        "peers:1: the address is 'h:65536', expected host:port or [IPv6]:port; "
        "a line is `name address:port key`");
    assert_refused(
        "a h:1\n", "peers:1: the key is '', expected the 44 characters that "
                   "`laconic key` prints");
    assert_refused(
        "\r\na h:1 " KEY_0 "A\r\n",
        "peers:2: the key is '" KEY_0 "A', expected the 44 characters that "
        "`laconic key` prints");
    assert_refused(
        "a h:1 " KEY_0 " more\n",
        "peers:1: the fourth word is 'more', expected three words on a line");
    assert_refused(
        "a h:1 " KEY_0 " # first\n",
        "peers:1: the fourth word is '#', expected three words on a line");
    assert_refused(
        long_name,
        "peers:1: the name is 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaa', expected one of at most 63 bytes");
}

static void words_are_shown_as_plain_text(void **state)
{
    (void)state;
    assert_refused(
        "a \x1b[2J\x07.\xff " KEY_0,
        "peers:1: the address is '?[2J?.?', expected host:port or [IPv6]:port; "
        "a line is `name address:port key`");
    laci_tcp_roster roster;
    assert_ok(parse("a\x1b[2J h:1 " KEY_0, &roster));
    assert_string_equal(roster.entries[0].name, "a?[2J");
    laci_tcp_roster_release(services, &roster);
}

static void a_nul_does_not_end_a_file(void **state)
{
    (void)state;
    static const char text[] = "a h:1 " KEY_0 "\nb\0 h:2\0 " KEY_1;
    laci_tcp_roster roster;
    assert_fails(
        laci_tcp_roster_parse(
            services, "peers", text, sizeof(text) - 1, &roster),
        LAC_ERR_INVALID,
        "peers:2: the address is 'h:2?', expected host:port or [IPv6]:port; a "
        "line is `name address:port key`");
}

static void two_workers_share_nothing(void **state)
{
    (void)state;
    assert_refused(
        "a h:1 " KEY_0 "\nb h:2 " KEY_1 "\n#\nc h:3 " KEY_0 "\n",
        "peers:4: c has the key of a, expected one key a worker");
    assert_refused(
        "a h:1 " KEY_0 "\nb h:2 " KEY_1 "\na h:3 " KEY_2 "\n",
        "peers:3: a second worker is named a, expected one name each");
}

// Writes `count` lines with a key each; returns their length.
static size_t write_lines(char *out, uint32_t count)
{
    size_t len = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t key[LACI_TCP_KEY] = {0};
        char text[LAC_KEY_TEXT_SIZE];
        memcpy(key, &i, sizeof(i));
        laci_tcp_key_text(key, text);
        len += (size_t)sprintf(out + len, "w%u h:1 %s\n", i, text);
    }
    return len;
}

static void a_group_has_at_most_16384_workers(void **state)
{
    (void)state;
    char *const text = malloc((LACI_TCP_WORKERS + 1) * 64);
    laci_tcp_roster roster = {0};
    size_t len = write_lines(text, LACI_TCP_WORKERS);
    assert_ok(laci_tcp_roster_parse(services, "peers", text, len, &roster));
    assert_int_equal(roster.count, LACI_TCP_WORKERS);
    laci_tcp_roster_release(services, &roster);
    len = write_lines(text, LACI_TCP_WORKERS + 1);
    assert_fails(
        laci_tcp_roster_parse(services, "peers", text, len, &roster),
        LAC_ERR_INVALID, "peers:16385: more than 16384 workers");
    free(text);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    laci_tcp_roster roster;
    assert_fails(
        laci_tcp_roster_read(services, "/no/such/file", &roster),
        LAC_ERR_NOTFOUND,
        "peers file /no/such/file: No such file or directory");
    assert_fails(
        laci_tcp_roster_read(services, "/", &roster), LAC_ERR_INVALID,
        "peers file /: Is a directory");
    // An endless one is not read to its end.
    assert_fails(
        laci_tcp_roster_read(services, "/dev/zero", &roster), LAC_ERR_INVALID,
        "peers file /dev/zero has 8388608 bytes or more");
}

static void lists_of_programs_are_checked(void **state)
{
    (void)state;
    laci_tcp_roster roster = {0};
    const lac_tcp_peer good[] = {
        {.address = "h:1", .key = KEY_0},
        {.name = "b\x1b", .address = "[::1]:2", .key = KEY_1}};
    assert_ok(laci_tcp_roster_copy(services, good, 2, &roster));
    assert_string_equal(roster.entries[0].name, "0");
    assert_string_equal(roster.entries[1].name, "b?");
    laci_tcp_roster_release(services, &roster);

    lac_tcp_peer bad[] = {good[0], good[1]};
    bad[1].key = KEY_0;
    assert_fails(
        laci_tcp_roster_copy(services, bad, 2, &roster), LAC_ERR_INVALID,
        "tcp: workers 0 and 1 have one key");
    bad[1].key = "short";
    assert_fails(
        laci_tcp_roster_copy(services, bad, 2, &roster), LAC_ERR_INVALID,
        "tcp: the key of worker 1 is 'short', expected 44 characters");
    bad[1] = (lac_tcp_peer){.address = "h", .key = KEY_1};
    assert_fails(
        laci_tcp_roster_copy(services, bad, 2, &roster), LAC_ERR_INVALID,
        "tcp: the address of worker 1 is 'h', expected host:port");
    bad[1] = (lac_tcp_peer){.address = "h:1", .key = KEY_1, .reserved = {0, 1}};
    assert_fails(
        laci_tcp_roster_copy(services, bad, 2, &roster), LAC_ERR_INVALID,
        "tcp: worker 1 has no address or no key, or sets reserved members");
    assert_null(roster.entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_worker),
        cmocka_unit_test(blank_lines_and_comments_hold_no_rank),
        cmocka_unit_test(a_wrong_line_is_named),
        cmocka_unit_test(words_are_shown_as_plain_text),
        cmocka_unit_test(a_nul_does_not_end_a_file),
        cmocka_unit_test(two_workers_share_nothing),
        cmocka_unit_test(a_group_has_at_most_16384_workers),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(lists_of_programs_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
