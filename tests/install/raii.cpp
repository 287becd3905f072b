// SPDX-License-Identifier: MIT
// laconic.hpp as a program uses it: threads average, states are saved, handles
// move, and failures are exceptions that end the other workers too.
#include <laconic/laconic.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <thread>
#include <type_traits>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace
{

#if __cplusplus >= 202002L
template <class T> using view = std::span<T>;
#else
template <class T> using view = laconic::span<T>;
#endif

constexpr std::uint32_t workers = 4;
std::atomic<int> failures;

#define EXPECT(condition)                                                      \
    do {                                                                       \
        if (!(condition)) {                                                    \
            std::printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
            failures++;                                                        \
        }                                                                      \
    } while (false)

// Returns the status and the message that `call` throws.
template <class Call> laconic::error failure_of(Call &&call)
{
    try {
        call();
    } catch (const laconic::error &e) {
        return e;
    }
    return {LAC_OK, ""};
}

bool contains(const std::exception &e, const char *part)
{
    return std::string(e.what()).find(part) != std::string::npos;
}

// Runs `work` in a thread for each worker. `work` may throw.
std::array<std::string, workers> run(
    const std::function<void(laconic::transport &)> &work)
{
    const laconic::hub hub(workers);
    std::array<std::string, workers> messages;
    std::array<std::thread, workers> threads;
    for (std::uint32_t rank = 0; rank < workers; rank++) {
        threads[rank] = std::thread([&, rank] {
            try {
                laconic::transport transport(hub, rank, workers);
                work(transport);
            } catch (const std::exception &e) {
                messages[rank] = e.what();
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    return messages;
}

const laconic::layout &model()
{
    static const laconic::layout layout({{"weight", 8, 6}, {"bias", 8}});
    return layout;
}

void gradients_become_their_mean()
{
    const auto messages = run([](laconic::transport &t) {
        laconic::algorithm mean({}, model(), t);
        std::vector<float> x(model().values(), float(t.rank()));
        mean.reduce(0, x);
        EXPECT(x == std::vector<float>(x.size(), 1.5F));
        std::vector<double> y(model().values(), 1 + t.rank());
        mean.reduce(1, y);
        EXPECT(y == std::vector<double>(y.size(), 2.5));
        mean.reduce(2, view<float>(x));
        EXPECT(x[0] == 1.5F);
        float bias[8] = {float(t.rank())}; // one tensor of the two
        const std::vector<lac_slice> slices = {{1, LAC_F32, bias, bias}};
        mean.reduce(3, slices);
        EXPECT(bias[0] == 1.5F && bias[1] == 0);
        EXPECT(mean.traffic().payload_bytes > 0);
    });
    for (const std::string &message : messages) {
        EXPECT(message.empty());
    }
}

void models_gossip_and_their_state_is_loaded()
{
    const auto messages = run([](laconic::transport &t) {
        const laconic::topology ring("ring", t.world());
        laconic::settings s;
        s.spec = "choco:gamma=0.3";
        s.compressor = "top-k:0.5";
        s.topology = &ring;
        laconic::algorithm first(s, model(), t);
        EXPECT(first.family() == LAC_FAMILY_MODEL && first.gamma() == 0.3);
        EXPECT(first.warning().empty());
        std::vector<float> x(model().values(), float(t.rank()));
        const std::vector<float> update(x.size(), 0.25F);
        first.start(x);
        first.mix(0, x, update);
        const std::vector<std::uint8_t> state = first.save();
        std::vector<float> y = x;
        first.begin(1, x);
        first.end(1, x, update);
        laconic::algorithm second = std::move(first);
        EXPECT(first.get() == nullptr); // NOLINT: what a move leaves
        second.load(state);
        second.mix(1, y, update);
        EXPECT(x == y);
        second.mix(2, y);
        EXPECT(std::isfinite(y[0]));
    });
    for (const std::string &message : messages) {
        EXPECT(message.empty());
    }
}

void failures_are_exceptions()
{
    const laconic::error unknown =
        failure_of([] { laconic::compressor c("no-such"); });
    EXPECT(unknown.status() == LAC_ERR_NOTFOUND);
    EXPECT(contains(unknown, "no-such"));
    EXPECT(failure_of([] {
               laconic::layout({{"x", 2}, {"x", 3}});
           }).status() == LAC_ERR_INVALID);
    EXPECT(failure_of([] {
               laconic::layout::parse("x y");
           }).status() == LAC_ERR_INVALID);
    EXPECT(failure_of([] {
               laconic::topology("ring", 0);
           }).status() == LAC_ERR_INVALID);
    EXPECT(failure_of([] {
               laconic::modules_path("lib");
           }).status() == LAC_ERR_INVALID);
    EXPECT(laconic::transport_library("local").empty());
    EXPECT(failure_of([] {
               laconic::transport_library("pigeon");
           }).status() == LAC_ERR_NOTFOUND);
    const auto messages = run([](laconic::transport &t) {
        laconic::algorithm mean({}, model(), t);
        std::vector<float> x(3);
        const laconic::error e = failure_of([&] { mean.reduce(0, x); });
        EXPECT(contains(e, "values: 3 values, the layout has 56"));
        EXPECT(e.status() == LAC_ERR_INVALID);
    });
    EXPECT(messages[0].empty());
}

void an_exception_of_one_worker_ends_all()
{
    const auto messages = run([](laconic::transport &t) {
        laconic::settings s;
        s.timeout = 500; // a worker that waits so long hangs
        laconic::algorithm mean(s, model(), t);
        std::vector<float> x(model().values());
        if (t.rank() == 2) {
            throw std::runtime_error("a bug");
        }
        mean.reduce(0, x);
    });
    EXPECT(messages[2] == "a bug");
    for (const std::uint32_t rank : {0U, 1U, 3U}) {
        EXPECT(messages[rank].find("worker 2 aborted") != std::string::npos);
    }
}

void payloads_are_decoded()
{
    laconic::compressor c("top-k:0.1");
    std::vector<float> x(1000);
    std::fill_n(x.begin(), 100, 1.0F); // neighbours have a short code
    const lac_shape shape = {50, 20};
    const lac_key key = lac_key_make(
        1, LAC_PURPOSE_COMPRESS, 0, lac_scope_shared(), lac_name_hash("x"));
    std::vector<std::uint8_t> payload = c.encode(key, shape, x);
    EXPECT(payload.size() < lac_compressor_bound(c.get(), shape, key.scope));
    EXPECT(c.decode(key, shape, payload) == x);
    payload.pop_back();
    EXPECT(failure_of([&] {
               c.decode(key, shape, payload);
           }).status() == LAC_ERR_CORRUPT);
    EXPECT(failure_of([&] {
               c.encode(key, {7, 1}, x);
           }).status() == LAC_ERR_INVALID);
}

template <class T> constexpr bool moves_only()
{
    return std::is_nothrow_move_constructible_v<T> &&
           std::is_move_assignable_v<T> && !std::is_copy_constructible_v<T> &&
           !std::is_copy_assignable_v<T>;
}

static_assert(moves_only<laconic::layout>());
static_assert(moves_only<laconic::topology>());
static_assert(moves_only<laconic::hub>());
static_assert(moves_only<laconic::transport>());
static_assert(moves_only<laconic::algorithm>());
static_assert(moves_only<laconic::compressor>());

} // namespace

int main()
{
    gradients_become_their_mean();
    models_gossip_and_their_state_is_loaded();
    failures_are_exceptions();
    an_exception_of_one_worker_ends_all();
    payloads_are_decoded();
    return failures == 0 ? 0 : 1;
}
