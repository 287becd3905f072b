// SPDX-License-Identifier: MIT
// The bytes of HELLO, of heads and of the rendezvous, as docs/format.md
// describes them, and what is refused.
#include "lac_test.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "transport/tcp/rendezvous.h"
#include "transport/tcp/session.h"

#define GIB ((uint64_t)1 << 30)

static laci_tcp_hello make_hello(void)
{
    laci_tcp_hello hello = {
        .encryption = true,
        .world = 5,
        .sender = 3,
        .receiver = 1,
        .incarnation = 0x1122334455667788,
    };
    memset(hello.session, 0xaa, sizeof(hello.session));
    memset(hello.binding, 0xbb, sizeof(hello.binding));
    return hello;
}

static void hello_has_its_bytes(void **state)
{
    (void)state;
    static const uint8_t start[] = {
        'L', 'A', 'C', 'H', 1, 0, 96, 0, 1, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, 1,
        0, 0, 0,                                        // sender,
                                                        // receiver
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // incarnation
    };
    const laci_tcp_hello hello = make_hello();
    uint8_t bytes[LACI_TCP_HELLO];
    laci_tcp_hello_write(&hello, bytes);
    assert_memory_equal(bytes, start, sizeof(start));
    assert_memory_equal(bytes + 32, hello.session, LACI_TCP_DIGEST);
    assert_memory_equal(bytes + 64, hello.binding, LACI_TCP_DIGEST);
}

static void the_expected_hello_is_accepted(void **state)
{
    (void)state;
    laci_tcp_hello expected = make_hello();
    uint8_t bytes[LACI_TCP_HELLO];
    char reason[LACI_TCP_REASON] = "";
    laci_tcp_hello_write(&expected, bytes);
    expected.incarnation = 0;
    assert_true(laci_tcp_hello_read(bytes, &expected, reason));
    assert_true(expected.incarnation == 0x1122334455667788);
    assert_string_equal(reason, "");
}

static void assert_refused(size_t at, uint8_t value, const char *why)
{
    laci_tcp_hello expected = make_hello();
    uint8_t bytes[LACI_TCP_HELLO];
    char reason[LACI_TCP_REASON] = "";
    laci_tcp_hello_write(&expected, bytes);
    bytes[at] = value;
    assert_false(laci_tcp_hello_read(bytes, &expected, reason));
    assert_string_equal(reason, why);
}

static void each_field_is_checked(void **state)
{
    (void)state;
    assert_refused(0, 'X', "its first message is not a HELLO of laconic");
    assert_refused(3, 'F', "its first message is not a HELLO of laconic");
    assert_refused(4, 2, "its HELLO has protocol version 2, expected 1");
    assert_refused(5, 1, "its HELLO has protocol version 257, expected 1");
    assert_refused(6, 95, "its HELLO has length 95, expected 96");
    assert_refused(8, 3, "its HELLO has unknown flags 2, expected 0");
    assert_refused(
        8, 0, "its setting is encryption=no, this worker's encryption=yes");
    assert_refused(12, 4, "its HELLO has a world of 4, expected 5");
    assert_refused(16, 2, "its HELLO has sender 2, expected 3");
    assert_refused(23, 1, "its HELLO has receiver 16777217, expected 1");
    assert_refused(32, 0, "it lists other workers: its peers file differs");
    assert_refused(63, 0, "it lists other workers: its peers file differs");
    assert_refused(64, 0, "its HELLO belongs to another connection");
    assert_refused(95, 0, "its HELLO belongs to another connection");
}

// No bit of a HELLO is without meaning, but for the incarnation.
static void every_changed_bit_is_refused(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < (size_t)8 * LACI_TCP_HELLO; bit++) {
        laci_tcp_hello expected = make_hello();
        uint8_t bytes[LACI_TCP_HELLO];
        char reason[LACI_TCP_REASON] = "";
        laci_tcp_hello_write(&expected, bytes);
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const bool incarnation = bit / 8 >= 24 && bit / 8 < 32;
        assert_int_equal(
            laci_tcp_hello_read(bytes, &expected, reason), incarnation);
        assert_int_equal(reason[0] == '\0', incarnation);
    }
}

static void a_hello_cannot_be_reflected(void **state)
{
    (void)state;
    const laci_tcp_hello sent = make_hello();
    laci_tcp_hello expected = make_hello();
    uint8_t bytes[LACI_TCP_HELLO];
    char reason[LACI_TCP_REASON];
    laci_tcp_hello_write(&sent, bytes);
    expected.sender = sent.receiver;
    expected.receiver = sent.sender;
    assert_false(laci_tcp_hello_read(bytes, &expected, reason));
    assert_string_equal(reason, "its HELLO has sender 3, expected 1");
}

static void a_session_is_its_keys_in_order(void **state)
{
    (void)state;
    laci_tcp_entry entries[2] = {
        {.name = "a", .key = {1}}, {.name = "b", .key = {2}}};
    const laci_tcp_roster both = {entries, 2}, one = {entries, 1};
    uint8_t first[LACI_TCP_DIGEST], again[LACI_TCP_DIGEST];
    assert_true(laci_tcp_session_digest(&both, first));
    entries[0].name[0] = 'z'; // names and addresses may differ
    entries[1].address.port = 7;
    assert_true(laci_tcp_session_digest(&both, again));
    assert_memory_equal(first, again, sizeof(first));
    assert_true(laci_tcp_session_digest(&one, again));
    assert_memory_not_equal(first, again, sizeof(first));
    entries[0].key[0] = 2;
    entries[1].key[0] = 1;
    assert_true(laci_tcp_session_digest(&both, again));
    assert_memory_not_equal(first, again, sizeof(first));
}

static bool read_head(
    uint32_t kind, uint64_t len, laci_tcp_head *head, char *reason)
{
    uint8_t bytes[LACI_TCP_HEAD];
    laci_put_u32(bytes, kind);
    laci_put_u32(bytes + 4, 0x04030201);
    laci_put_u64(bytes + 8, len);
    return laci_tcp_head_read(bytes, head, reason);
}

static void heads_have_limits(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind;
        uint64_t most;
    } limits[] = {{0, 64 * GIB}, {1, 407}, {2, 407}};
    laci_tcp_head head;
    char reason[LACI_TCP_REASON], expected[LACI_TCP_REASON];
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        const uint64_t most = limits[i].most;
        const uint64_t longer[] = {most + 1, (uint64_t)1 << 63, UINT64_MAX};
        assert_true(read_head(limits[i].kind, 0, &head, reason));
        assert_true(read_head(limits[i].kind, most, &head, reason));
        assert_int_equal(head.kind, limits[i].kind);
        assert_int_equal(head.tag, 0x04030201);
        assert_true(head.len == most);
        for (size_t k = 0; k < sizeof(longer) / sizeof(longer[0]); k++) {
            assert_false(read_head(limits[i].kind, longer[k], &head, reason));
            (void)snprintf(
                expected, sizeof(expected),
                "a message of %llu bytes, expected at most %llu",
                (unsigned long long)longer[k], (unsigned long long)most);
            assert_string_equal(reason, expected);
        }
    }
}

static void unknown_kinds_are_refused(void **state)
{
    (void)state;
    laci_tcp_head head;
    char reason[LACI_TCP_REASON];
    assert_false(read_head(3, 0, &head, reason));
    assert_string_equal(reason, "a message of kind 3, expected one below 3");
    assert_false(read_head(UINT32_MAX, 0, &head, reason));
    assert_string_equal(
        reason, "a message of kind 4294967295, expected one below 3");
}

static laci_tcp_request make_request(void)
{
    laci_tcp_request request = {
        .world = 4, .rank = 2, .address = {.host = "10.0.0.2", .port = 0x1234}};
    memset(request.key, 0xcc, sizeof(request.key));
    memset(request.binding, 0xdd, sizeof(request.binding));
    return request;
}

static void a_request_has_its_bytes(void **state)
{
    (void)state;
    static const uint8_t start[] = {
        'L', 'A', 'C', 'M', 1, 0, 160,  0,    4, 0,
        0,   0,   2,   0,   0, 0, 0x34, 0x12, 0, 0,
    };
    const laci_tcp_request request = make_request();
    laci_tcp_request again;
    uint8_t bytes[LACI_TCP_REQUEST];
    char reason[LACI_TCP_REASON];
    laci_tcp_request_write(&request, bytes);
    assert_memory_equal(bytes, start, sizeof(start));
    assert_memory_equal(bytes + 20, request.key, LACI_TCP_KEY);
    assert_memory_equal(bytes + 52, request.binding, LACI_TCP_DIGEST);
    assert_string_equal((const char *)bytes + 84, "10.0.0.2");
    assert_true(laci_tcp_request_read(bytes, &again, reason));
    assert_int_equal(again.world, 4);
    assert_int_equal(again.rank, 2);
    assert_int_equal(again.address.port, 0x1234);
    assert_string_equal(again.address.host, "10.0.0.2");
    assert_memory_equal(again.key, request.key, sizeof(again.key));
    assert_memory_equal(again.binding, request.binding, sizeof(again.binding));
}

static void assert_request_refused(
    size_t at, const void *value, size_t len, const char *why)
{
    const laci_tcp_request request = make_request();
    laci_tcp_request out;
    uint8_t bytes[LACI_TCP_REQUEST];
    char reason[LACI_TCP_REASON] = "";
    laci_tcp_request_write(&request, bytes);
    memcpy(bytes + at, value, len);
    assert_false(laci_tcp_request_read(bytes, &out, reason));
    assert_string_equal(reason, why);
}

static void requests_are_checked(void **state)
{
    (void)state;
    static const char address[] = "its request has no usable address";
    char endless[LACI_TCP_REPLY_HOST];
    memset(endless, 'a', sizeof(endless));
    assert_request_refused(
        0, "LACH", 4, "its first message is not a request of laconic");
    assert_request_refused(
        4, "\2", 1, "its request has protocol version 2, expected 1");
    assert_request_refused(6, "\1", 1, address);
    assert_request_refused(16, "\0\0", 2, address);
    assert_request_refused(84, endless, sizeof(endless), address);
    assert_request_refused(84, "a b", 4, address);
    assert_request_refused(84, "\x1b[2J", 5, address);
    assert_request_refused(84, "]::1[", 6, address);
}

static void reserved_bytes_of_requests_are_0(void **state)
{
    (void)state;
    static const int reserved[] = {18,  19,  148, 149, 150, 151, 152,
                                   153, 154, 155, 156, 157, 158, 159};
    char why[LACI_TCP_REASON];
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        (void)snprintf(
            why, sizeof(why),
            "its request has 128 in the reserved byte %d, expected 0",
            reserved[i]);
        assert_request_refused((size_t)reserved[i], "\x80", 1, why);
    }
}

static void hosts_of_requests(void **state)
{
    (void)state;
    static const char *const hosts[] = {"", "::1", "fe80::1%eth0", "node-1"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        laci_tcp_request request = make_request(), again;
        uint8_t bytes[LACI_TCP_REQUEST];
        char reason[LACI_TCP_REASON];
        (void)snprintf(
            request.address.host, sizeof(request.address.host), "%s", hosts[i]);
        laci_tcp_request_write(&request, bytes);
        if (!laci_tcp_request_read(bytes, &again, reason)) {
            fail_msg("host '%s': %s", hosts[i], reason);
        }
        assert_string_equal(again.address.host, hosts[i]);
    }
}

static bool reads_reply(const char *magic, uint32_t count, uint32_t text_len)
{
    uint8_t bytes[LACI_TCP_REPLY];
    laci_tcp_reply reply;
    memcpy(bytes, magic, 4);
    laci_put_u32(bytes + 4, count);
    laci_put_u32(bytes + 8, text_len);
    return laci_tcp_reply_read(bytes, &reply) && reply.count == count &&
           reply.text_len == text_len;
}

static void replies_are_checked(void **state)
{
    (void)state;
    assert_true(reads_reply("LACR", 1, 0));
    assert_true(reads_reply("LACR", LACI_TCP_WORKERS, 0));
    assert_true(reads_reply("LACR", 0, 0));
    assert_true(reads_reply("LACR", 0, LACI_TCP_REASON - 1));
    assert_false(reads_reply("LACM", 1, 0));
    assert_false(reads_reply("LACR", LACI_TCP_WORKERS + 1, 0));
    assert_false(reads_reply("LACR", UINT32_MAX, 0));
    assert_false(reads_reply("LACR", 0, LACI_TCP_REASON));
    assert_false(reads_reply("LACR", 0, UINT32_MAX));
    assert_false(reads_reply("LACR", 1, 1));
}

static void entries_of_replies(void **state)
{
    (void)state;
    laci_tcp_entry entry = {.address = {.host = "::1", .port = 29500}}, again;
    uint8_t bytes[LACI_TCP_REPLY_ENTRY];
    memset(entry.key, 0xee, sizeof(entry.key));
    laci_tcp_reply_entry_write(&entry, bytes);
    assert_string_equal((const char *)bytes, "::1");
    assert_int_equal(laci_get_u16(bytes + 64), 29500);
    assert_memory_equal(bytes + 66, entry.key, sizeof(entry.key));
    assert_true(laci_tcp_reply_entry_read(bytes, &again));
    assert_string_equal(again.address.host, "::1");
    assert_int_equal(again.address.port, 29500);
    assert_memory_equal(again.key, entry.key, sizeof(entry.key));
    bytes[64] = bytes[65] = 0;
    assert_false(laci_tcp_reply_entry_read(bytes, &again));
    bytes[65] = 1;
    memset(bytes, 'a', LACI_TCP_REPLY_HOST);
    assert_false(laci_tcp_reply_entry_read(bytes, &again));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hello_has_its_bytes),
        cmocka_unit_test(the_expected_hello_is_accepted),
        cmocka_unit_test(each_field_is_checked),
        cmocka_unit_test(every_changed_bit_is_refused),
        cmocka_unit_test(a_hello_cannot_be_reflected),
        cmocka_unit_test(a_session_is_its_keys_in_order),
        cmocka_unit_test(heads_have_limits),
        cmocka_unit_test(unknown_kinds_are_refused),
        cmocka_unit_test(a_request_has_its_bytes),
        cmocka_unit_test(requests_are_checked),
        cmocka_unit_test(reserved_bytes_of_requests_are_0),
        cmocka_unit_test(hosts_of_requests),
        cmocka_unit_test(replies_are_checked),
        cmocka_unit_test(entries_of_replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
