// SPDX-License-Identifier: MIT
// Bandwidths and times as people write them, and those that are rejected.
#include <math.h>
#include <string.h>

#include "cli/options/units.h"
#include "lac_test.h"

// Powers of ten are exact to a few units in the last place.
static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-12 * fabs(b);
}

typedef struct sample {
    const char *text;
    double value;
} sample;

static void bits_are_an_eighth_of_a_byte(void **state)
{
    (void)state;
    static const sample samples[] = {
        {"8bit", 1},
        {"8 bit/s", 1},
        {"8bps", 1},
        {"8b/s", 1},
        {"8kbit", 1e3},
        {"8Kbit/s", 1e3},
        {"8kbps", 1e3},
        {"8Kb/s", 1e3},
        {"100Mbit", 1.25e7},
        {"100 Mbit/s", 1.25e7},
        {"100mbit", 1.25e7},
        {"100Mbps", 1.25e7},
        {"100mbps", 1.25e7},
        {"100Mb/s", 1.25e7},
        {"100Mb", 1.25e7},
        {"94.2 Mbits/sec", 94.2e6 / 8},
        {"1Gbit", 1.25e8},
        {"1gbps", 1.25e8},
        {"1 Gb/s", 1.25e8},
        {"2.5Gbit/s", 3.125e8},
        {"1.4e3Mbit", 1.75e8},
        {".5Gbit", 6.25e7},
        {"1Tbit/s", 1.25e11},
        {"1 GBIT/s", 1.25e8},
        {"8 Mibit/s", 1048576},
        {"1Mbitps", 1.25e5},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        double found = 0;
        assert_ok(units_bandwidth(samples[i].text, "bandwidth", &found));
        assert_true(close_to(found, samples[i].value));
    }
}

static void capital_b_is_byte(void **state)
{
    (void)state;
    static const sample samples[] = {
        {"1B/s", 1},          {"1 byte/s", 1},
        {"3kB/s", 3e3},       {"3KB/s", 3e3},
        {"12.5MB/s", 1.25e7}, {"12.5 MBps", 1.25e7},
        {"12.5MB", 1.25e7},   {"112 MBytes/sec", 1.12e8},
        {"1GB/s", 1e9},       {"1 Gbytes/s", 1e9},
        {"2MiB/s", 2097152},  {"1TB/s", 1e12},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        double found = 0;
        assert_ok(units_bandwidth(samples[i].text, "bandwidth", &found));
        assert_true(close_to(found, samples[i].value));
    }
}

static void rates_that_may_be_either_are_rejected_with_both(void **state)
{
    (void)state;
    static const char *const texts[] = {"100mb/s", "1 gb/s", "1gb",   "100kb/s",
                                        "1MBPS",   "1MB/S",  "1GBPS", "100M",
                                        "100 G",   "1G/s",   "1mB/s", "1tbPS"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        double found = -1;
        assert_int_equal(
            units_bandwidth(texts[i], "bandwidth", &found), LAC_ERR_INVALID);
        assert_non_null(
            strstr(lac_error_message(), "which may be bits or bytes"));
        assert_true(found == -1);
    }
    double found;
    (void)!units_bandwidth("100mb/s", "bandwidth", &found);
    assert_string_equal(
        lac_error_message(), "--bandwidth is \"100mb/s\", which may be bits or "
                             "bytes, expected Mbit/s or MB/s");
}

static void impossible_bandwidths_are_rejected(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",          "Mbit",    "0Mbit",    "-5Mbit",    "+5Mbit",
        "nanMbit",   "infMbit", "0x10Mbit", "1e999bit",  "1e30Gbit",
        "0.1bit/s",  "100",     "100 ",     "1 furlong", "1Mbitx",
        "1 Mbit /s", "1,5Mbit", " 1Mbit",   "1Mbit/min", "1ms",
        "1Ebit",     "1\nMbit", "1..5Mbit", "1Mibi"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        double found = -1;
        assert_int_equal(
            units_bandwidth(texts[i], "bandwidth", &found), LAC_ERR_INVALID);
        assert_non_null(strstr(lac_error_message(), "--bandwidth is \""));
        assert_null(strstr(lac_error_message(), "may be bits"));
        assert_true(found == -1);
    }
}

static void times_have_a_unit(void **state)
{
    (void)state;
    static const sample samples[] = {
        {"229ms", 0.229}, {"0.1 s", 0.1}, {"50us", 5e-5},
        {"50 µs", 5e-5},  {"50μs", 5e-5}, {"7.4e0us", 7.4e-6},
        {"3ns", 3e-9},    {"2min", 120},  {"1e6s", 1e6},
    };
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        double found = 0;
        assert_ok(units_seconds(samples[i].text, "latency", &found));
        assert_true(close_to(found, samples[i].value));
    }
}

static void impossible_times_are_rejected(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",     "ms",   "0s",   "-1ms", "1",    "1 m",  "1Ms",   "1 hour",
        "nans", "infs", "1e9s", "0ns",  "1 s ", "0x1s", "1Mbit", "1MS"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        double found = -1;
        assert_int_equal(
            units_seconds(texts[i], "latency", &found), LAC_ERR_INVALID);
        assert_non_null(strstr(lac_error_message(), "--latency is \""));
        assert_true(found == -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_an_eighth_of_a_byte),
        cmocka_unit_test(capital_b_is_byte),
        cmocka_unit_test(rates_that_may_be_either_are_rejected_with_both),
        cmocka_unit_test(impossible_bandwidths_are_rejected),
        cmocka_unit_test(times_have_a_unit),
        cmocka_unit_test(impossible_times_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
