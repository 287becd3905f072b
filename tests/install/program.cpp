// SPDX-License-Identifier: MIT
// The same in C++: an error with its message, then a round trip.
#include <laconic/laconic.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

struct closer {
    void operator()(lac_compressor *c) const
    {
        lac_compressor_close(c);
    }
};

int main()
{
    lac_compressor *opened = nullptr;
    if (lac_compressor_open(&opened, "no-such", LAC_FORM_PLAIN) !=
            LAC_ERR_NOTFOUND ||
        std::string(lac_error_message()).find("no-such") == std::string::npos) {
        std::puts("a wrong name is not reported");
        return 1;
    }
    if (lac_compressor_open(&opened, "identity", LAC_FORM_PLAIN) != LAC_OK) {
        return 1;
    }
    const std::unique_ptr<lac_compressor, closer> c(opened);
    const std::vector<float> x = {1, -2, 3};
    const lac_shape shape = {x.size(), 1};
    const lac_key key = lac_key_make(
        1, LAC_PURPOSE_COMPRESS, 0, lac_scope_shared(), lac_name_hash("x"));
    std::vector<std::uint8_t> payload(
        lac_compressor_bound(c.get(), shape, key.scope));
    std::vector<float> y(x.size());
    std::size_t len = 0;
    if (lac_compressor_reserve(c.get(), shape) != LAC_OK ||
        lac_compressor_encode(
            c.get(), &key, shape, x.data(), payload.data(), payload.size(),
            &len) != LAC_OK ||
        lac_compressor_decode(
            c.get(), &key, shape, payload.data(), len, y.data()) != LAC_OK) {
        std::puts(lac_error_message());
        return 1;
    }
    return x == y ? 0 : 1;
}
