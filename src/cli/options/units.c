// SPDX-License-Identifier: MIT
// Numbers with units. A bandwidth is
//
//     number [space] [prefix] (bit | bits | byte | bytes | b | B) [rate]
//
// where the rate is /s, /sec or ps. The words bit and byte are unambiguous in
// any case, and bps in lower case is bits a second. A single b or B counts as
// bit or byte only if the case of the rest shows that it was chosen with care:
// Mb/s and MB/s, but not mb/s, MB/S or kb/s.
#include "cli/options/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const double bandwidth_min = 0.125, bandwidth_max = 1.25e14;
static const double seconds_min = 1e-9, seconds_max = 1e7;

// Reads the number at the start of `text` and writes where its unit begins.
// Returns false if there is none. strtod alone would also accept "inf", "nan"
// and hexadecimal numbers.
static bool units_number(const char *text, double *out, const char **unit_out)
{
    char *end = NULL;
    const double value = strtod(text, &end);
    if (((*text < '0' || *text > '9') && *text != '.') ||
        strspn(text, "0123456789.eE+-") < (size_t)(end - text) || end == text ||
        !isfinite(value)) {
        return false;
    }
    *out = value;
    *unit_out = end + strspn(end, " ");
    return true;
}

// A unit of bandwidth.
typedef struct unit {
    double factor;    // of the prefix
    char prefix;      // as it was written, or '\0'
    const char *rest; // after the prefix
} unit;

// Removes a prefix: k, M, G or T in any case; with an i, of powers of 1024.
static unit split_prefix(const char *text)
{
    static const char prefixes[] = "kKmMgGtT";
    const char *const at = *text == '\0' ? NULL : strchr(prefixes, *text);
    if (at == NULL) {
        return (unit){1, '\0', text};
    }
    const bool binary = text[1] == 'i';
    return (unit){
        pow(binary ? 1024 : 1000, (double)((at - prefixes) / 2 + 1)), *text,
        text + (binary ? 2 : 1)};
}

typedef enum meaning { UNKNOWN, BITS, BYTES, EITHER } meaning;

// Units of one character, and the prefixes after which it was chosen with care.
static const struct {
    const char *text;
    meaning meaning;
    const char *prefixes;
} short_units[] = {
    {"bps", BITS, "kKmMgGtT"}, {"b", BITS, "KMGT"},
    {"b/s", BITS, "KMGT"},     {"b/sec", BITS, "KMGT"},
    {"B", BYTES, "kKMGT"},     {"Bps", BYTES, "kKMGT"},
    {"B/s", BYTES, "kKMGT"},   {"B/sec", BYTES, "kKMGT"},
};

static bool is_per_second(const char *text)
{
    return strcmp(text, "") == 0 || strcmp(text, "/s") == 0 ||
           strcmp(text, "/sec") == 0 || strcmp(text, "ps") == 0;
}

// Whether `text` is the word, singular or plural, in any case, and a rate.
static bool is_word(const char *text, const char *word)
{
    const size_t len = strlen(word);
    return strncasecmp(text, word, len) == 0 &&
           (is_per_second(text + len) ||
            ((text[len] | 0x20) == 's' && is_per_second(text + len + 1)));
}

static meaning unit_meaning(const unit *u)
{
    if (is_word(u->rest, "bit")) {
        return BITS;
    }
    if (is_word(u->rest, "byte")) {
        return BYTES;
    }
    meaning found =
        u->prefix != '\0' && is_per_second(u->rest) ? EITHER : UNKNOWN;
    for (size_t i = 0; i < sizeof(short_units) / sizeof(short_units[0]); i++) {
        if (strcasecmp(u->rest, short_units[i].text) == 0) {
            found = EITHER;
        }
        if (strcmp(u->rest, short_units[i].text) == 0) {
            return u->prefix == '\0' ||
                           strchr(short_units[i].prefixes, u->prefix) != NULL
                       ? short_units[i].meaning
                       : EITHER;
        }
    }
    return found;
}

// The prefix of a unit as it should be written, after a number.
static const char *written_prefix(char prefix)
{
    switch (prefix | 0x20) {
    case 'k':
        return "k";
    case 'm':
        return "M";
    case 'g':
        return "G";
    case 't':
        return "T";
    default:
        return "";
    }
}

lac_status units_bandwidth(
    const char *text, const char *option, double *bytes_per_second_out)
{
    const char *unit_text = "";
    double value = 0;
    if (!units_number(text, &value, &unit_text)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--%s is \"%s\", expected a positive number and a unit, such as "
            "100Mbit, 1 Gbit/s or 12.5MB/s",
            option, text);
    }
    const unit u = split_prefix(unit_text);
    const meaning what = unit_meaning(&u);
    if (what == EITHER) {
        const char *const prefix = written_prefix(u.prefix);
        return lac_fail(
            LAC_ERR_INVALID,
            "--%s is \"%s\", which may be bits or bytes, expected %sbit/s or "
            "%sB/s",
            option, text, prefix, prefix);
    }
    if (what == UNKNOWN) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--%s is \"%s\", expected a unit such as Mbit, Gbit/s or MB/s",
            option, text);
    }
    const double bytes = value * u.factor / (what == BITS ? 8 : 1);
    if (!(bytes >= bandwidth_min && bytes <= bandwidth_max)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--%s is \"%s\", expected from 1 bit/s to 1000 Tbit/s", option,
            text);
    }
    *bytes_per_second_out = bytes;
    return LAC_OK;
}

lac_status units_seconds(
    const char *text, const char *option, double *seconds_out)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {
        {"s", 1},          {"ms", 1e-3}, {"us", 1e-6}, {"\u00b5s", 1e-6},
        {"\u03bcs", 1e-6}, {"ns", 1e-9}, {"min", 60},
    };
    const char *name = "";
    double value = 0, seconds = 0;
    const bool number = units_number(text, &value, &name);
    for (size_t i = 0; number && i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(name, units[i].name) == 0) {
            seconds = value * units[i].seconds;
        }
    }
    if (!(seconds >= seconds_min && seconds <= seconds_max)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--%s is \"%s\", expected a time from %g to %g s with a unit, such "
            "as 229ms, 0.1 s or 50us",
            option, text, seconds_min, seconds_max);
    }
    *seconds_out = seconds;
    return LAC_OK;
}
