// SPDX-License-Identifier: MIT
// The library for C++17 and later: handles that close themselves, exceptions
// instead of statuses, and vectors instead of pointers and lengths.
//
//     laconic::transport transport("mpi");
//     const laconic::layout layout({{"weight", 512, 784}, {"bias", 512}});
//     laconic::settings settings;
//     settings.spec = "powersgd:rank=4";
//     laconic::algorithm mean(settings, layout, transport);
//     for (std::uint64_t step = 0; step < steps; step++) {
//         ... gradient, a std::vector<float> of layout.values() values ...
//         mean.reduce(step, gradient);
//     }
//
// Every handle can be moved and not copied; get() returns the handle of the C
// interface, for everything that has no member function here. The headers in C
// describe the calls, and the rules for memory and threads.
//
// Lifetimes: a layout and a topology must outlive the algorithms that use them,
// and a hub its transports. Objects that are declared in the order of the
// example above are destroyed in a valid order.
//
// Exceptions: a call that fails throws laconic::error. A transport that goes
// out of scope because of an exception aborts first, so that the other workers
// fail at once instead of waiting for this one.
#ifndef LACONIC_LACONIC_HPP
#define LACONIC_LACONIC_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <laconic/laconic.h>

namespace laconic
{

/// What a failed call throws: the message of lac_error_message, and its status.
class error : public std::runtime_error
{
  public:
    error(lac_status status, const char *message)
        : std::runtime_error(message), status_(status)
    {
    }

    lac_status status() const noexcept
    {
        return status_;
    }

  private:
    lac_status status_;
};

/// check throws unless `status` is LAC_OK, for calls of the C interface.
inline void check(lac_status status)
{
    if (status != LAC_OK) {
        throw error(status, lac_error_message());
    }
}

/// Consecutive values that somebody else owns: of a std::vector, std::array,
/// std::span or array, or a pointer and a length.
template <class T> class span
{
  public:
    span(T *data, std::size_t size) noexcept : data_(data), size_(size)
    {
    }

    template <
        class Container, class = std::enable_if_t<std::is_convertible_v<
                             std::remove_pointer_t<decltype(std::data(
                                 std::declval<Container &>()))> (*)[],
                             T (*)[]>>>
    span(Container &&values) noexcept // NOLINT: implicit on purpose
        : data_(std::data(values)), size_(std::size(values))
    {
    }

    T *data() const noexcept
    {
        return data_;
    }

    std::size_t size() const noexcept
    {
        return size_;
    }

  private:
    T *data_;
    std::size_t size_;
};

/// A handle of the C interface that is closed once.
template <class T, void (*Close)(T *)> class handle
{
  public:
    /// get returns the handle of the C interface, still owned by this object.
    T *get() const noexcept
    {
        return owned_.get();
    }

  protected:
    explicit handle(T *opened = nullptr) noexcept : owned_(opened)
    {
    }

    void take(T *opened) noexcept
    {
        owned_.reset(opened);
    }

  private:
    struct closer {
        void operator()(T *opened) const noexcept
        {
            Close(opened);
        }
    };

    std::unique_ptr<T, closer> owned_;
};

/// One tensor of a model.
struct tensor {
    std::string name;
    std::size_t rows;
    std::size_t cols = 1;
};

/// The tensors of a model, in order.
class layout : public handle<lac_layout, lac_layout_close>
{
  public:
    explicit layout(const std::vector<tensor> &tensors)
    {
        std::vector<lac_tensor> list;
        for (const tensor &t : tensors) {
            list.push_back({t.name.c_str(), {t.rows, t.cols}, 0, 0});
        }
        lac_layout *opened = nullptr;
        check(lac_layout_open(&opened, list.data(), list.size()));
        take(opened);
    }

    layout(std::initializer_list<tensor> tensors)
        : layout(std::vector<tensor>(tensors))
    {
    }

    /// A layout from text, one tensor a line: lac_layout_parse.
    static layout parse(const std::string &text)
    {
        lac_layout *opened = nullptr;
        check(lac_layout_parse(&opened, text.data(), text.size()));
        return layout(opened);
    }

    std::size_t count() const noexcept
    {
        return lac_layout_count(get());
    }

    std::size_t values() const noexcept
    {
        return lac_layout_values(get());
    }

    const lac_tensor &operator[](std::size_t index) const noexcept
    {
        return *lac_layout_tensor(get(), index);
    }

  private:
    explicit layout(lac_layout *opened) noexcept : handle(opened)
    {
    }
};

/// The graph of neighbours.
class topology : public handle<lac_topology, lac_topology_close>
{
  public:
    topology(
        const std::string &spec, std::uint32_t workers, std::uint64_t seed = 1)
    {
        lac_topology *opened = nullptr;
        check(lac_topology_open(&opened, spec.c_str(), workers, seed));
        take(opened);
    }
};

/// What connects the threads of one process.
class hub : public handle<lac_hub, lac_hub_close>
{
  public:
    explicit hub(std::uint32_t world)
    {
        lac_hub *opened = nullptr;
        check(lac_hub_open(&opened, world));
        take(opened);
    }
};

/// This worker's membership in a group. Its end is lac_transport_leave, after
/// lac_transport_abort where an exception ends it.
class transport
{
  public:
    /// Joins "mpi" or "tcp", which know the rank and the number of workers.
    explicit transport(const std::string &spec)
        : transport(spec, nullptr, LAC_RANK_ANY, LAC_RANK_ANY)
    {
    }

    /// Joins "local" as thread `rank` of `world`.
    transport(const hub &threads, std::uint32_t rank, std::uint32_t world)
        : transport("local", threads.get(), rank, world)
    {
    }

    transport(transport &&other) noexcept
        : joined_(std::exchange(other.joined_, nullptr)),
          exceptions_(other.exceptions_)
    {
    }

    transport &operator=(transport &&other) noexcept
    {
        std::swap(joined_, other.joined_);
        std::swap(exceptions_, other.exceptions_);
        return *this;
    }

    transport(const transport &) = delete;
    transport &operator=(const transport &) = delete;

    ~transport()
    {
        if (joined_ != nullptr && std::uncaught_exceptions() > exceptions_) {
            const char *const why = lac_error_message();
            abort(*why == '\0' ? "an exception was thrown" : why);
        }
        lac_transport_leave(joined_);
    }

    lac_transport *get() const noexcept
    {
        return joined_;
    }

    std::uint32_t rank() const noexcept
    {
        return lac_transport_rank(joined_);
    }

    std::uint32_t world() const noexcept
    {
        return lac_transport_world(joined_);
    }

    void abort(const char *why) noexcept
    {
        lac_transport_abort(joined_, why);
    }

  private:
    transport(
        const std::string &spec, lac_hub *threads, std::uint32_t rank,
        std::uint32_t world)
    {
        check(lac_transport_join(&joined_, spec.c_str(), threads, rank, world));
    }

    lac_transport *joined_ = nullptr;
    int exceptions_ = std::uncaught_exceptions();
};

/// modules_path names the folder of the modules of "mpi" and "tcp".
inline void modules_path(const std::string &folder)
{
    check(lac_modules_path(folder.c_str()));
}

/// transport_library returns the library that a transport uses, with its
/// version: "Open MPI v4.1.4". lac_transport_library describes it.
inline std::string transport_library(const std::string &spec)
{
    char text[LAC_LIBRARY_SIZE];
    check(lac_transport_library(spec.c_str(), text, sizeof(text)));
    return text;
}

/// The settings of an algorithm; lac_algorithm_options describes them.
struct settings {
    std::string spec = "allreduce";
    std::string compressor; ///< Empty where the algorithm takes none.
    const laconic::topology *topology = nullptr;
    std::uint64_t seed = 1;
    std::uint64_t session = 0;
    double timeout = 60;
    bool training = false;
    lac_nonfinite nonfinite = LAC_NONFINITE_STOP;
};

/// An algorithm. A call takes all tensors, as one flat vector of float or
/// double in the order of the layout, or the slices of any of them.
class algorithm : public handle<lac_algorithm, lac_algorithm_close>
{
  public:
    algorithm(const settings &s, const layout &tensors, transport &workers)
        : layout_(tensors.get()), slices_(tensors.count()),
          updates_(tensors.count())
    {
        lac_algorithm_options options = lac_algorithm_options_default();
        options.spec = s.spec.c_str();
        options.compressor =
            s.compressor.empty() ? nullptr : s.compressor.c_str();
        options.layout = tensors.get();
        options.topology = s.topology == nullptr ? nullptr : s.topology->get();
        options.transport = workers.get();
        options.seed = s.seed;
        options.session = s.session;
        options.timeout = s.timeout;
        options.training = s.training;
        options.nonfinite = s.nonfinite;
        lac_algorithm *opened = nullptr;
        check(lac_algorithm_open(&opened, &options));
        take(opened);
    }

    /// reduce replaces the values by their mean over all workers.
    template <class Values> void reduce(std::uint64_t round, Values &&values)
    {
        const auto slices = slices_of(values);
        check(lac_algorithm_reduce(get(), round, slices.data(), slices.size()));
    }

    template <class Values> void start(Values &&values)
    {
        const auto slices = slices_of(values);
        check(lac_algorithm_start(get(), slices.data(), slices.size()));
    }

    /// mix averages the values with those of the neighbours. `update`, the
    /// local step of all tensors, is added to them.
    template <class Values> void mix(std::uint64_t round, Values &&values)
    {
        const auto slices = slices_of(values);
        check(lac_algorithm_mix(
            get(), round, slices.data(), nullptr, slices.size()));
    }

    template <class Values>
    void mix(std::uint64_t round, Values &&values, span<const float> update)
    {
        const float *const *const updates = updates_of(update);
        const auto slices = slices_of(values);
        check(lac_algorithm_mix(
            get(), round, slices.data(), updates, slices.size()));
    }

    /// begin and end are the halves of mix.
    template <class Values> void begin(std::uint64_t round, Values &&values)
    {
        const auto slices = slices_of(values);
        check(lac_algorithm_begin(get(), round, slices.data(), slices.size()));
    }

    template <class Values> void end(std::uint64_t round, Values &&values)
    {
        const auto slices = slices_of(values);
        check(lac_algorithm_end(
            get(), round, slices.data(), nullptr, slices.size()));
    }

    template <class Values>
    void end(std::uint64_t round, Values &&values, span<const float> update)
    {
        const float *const *const updates = updates_of(update);
        const auto slices = slices_of(values);
        check(lac_algorithm_end(
            get(), round, slices.data(), updates, slices.size()));
    }

    std::vector<std::uint8_t> save() const
    {
        std::vector<std::uint8_t> state(lac_algorithm_state_size(get()));
        check(lac_algorithm_save(get(), state.data(), state.size()));
        return state;
    }

    void load(span<const std::uint8_t> state, unsigned flags = 0)
    {
        check(
            lac_algorithm_load_with(get(), state.data(), state.size(), flags));
    }

    lac_family family() const noexcept
    {
        return lac_algorithm_family(get());
    }

    double gamma() const noexcept
    {
        return lac_algorithm_gamma(get());
    }

    /// set_rate sets the learning rate of the local steps.
    void set_rate(double rate)
    {
        check(lac_algorithm_set_rate(get(), rate));
    }

    /// warning returns a text about this choice of algorithm, or "".
    std::string warning() const
    {
        const char *const text = lac_algorithm_warning(get());
        return text == nullptr ? "" : text;
    }

    lac_traffic traffic() const noexcept
    {
        return lac_algorithm_traffic(get());
    }

  private:
    static constexpr lac_dtype dtype_of(const float *) noexcept
    {
        return LAC_F32;
    }

    static constexpr lac_dtype dtype_of(const double *) noexcept
    {
        return LAC_F64;
    }

    void check_size(const char *what, std::size_t size) const
    {
        const std::size_t expected = lac_layout_values(layout_);
        if (size != expected) {
            check(lac_fail(
                LAC_ERR_INVALID, "%s: %zu values, the layout has %zu", what,
                size, expected));
        }
    }

    template <class T> span<const lac_slice> all_slices(T *values)
    {
        for (std::size_t i = 0; i < slices_.size(); i++) {
            T *const x = values + lac_layout_tensor(layout_, i)->offset;
            slices_[i] = {i, dtype_of(x), x, x};
        }
        return slices_;
    }

    template <class Values> span<const lac_slice> slices_of(Values &values)
    {
        using T = std::remove_pointer_t<decltype(std::data(values))>;
        if constexpr (std::is_same_v<std::remove_const_t<T>, lac_slice>) {
            return values;
        } else {
            check_size("values", std::size(values));
            return all_slices(std::data(values));
        }
    }

    const float *const *updates_of(span<const float> update)
    {
        check_size("updates", update.size());
        for (std::size_t i = 0; i < updates_.size(); i++) {
            updates_[i] = update.data() + lac_layout_tensor(layout_, i)->offset;
        }
        return updates_.data();
    }

    const lac_layout *layout_;
    std::vector<lac_slice> slices_;
    std::vector<const float *> updates_;
};

/// A compressor.
class compressor : public handle<lac_compressor, lac_compressor_close>
{
  public:
    explicit compressor(const std::string &spec, lac_form form = LAC_FORM_PLAIN)
    {
        lac_compressor *opened = nullptr;
        check(lac_compressor_open(&opened, spec.c_str(), form));
        take(opened);
    }

    /// encode returns the payload of a tensor, for which it reserves memory.
    std::vector<std::uint8_t> encode(
        const lac_key &key, lac_shape shape, span<const float> x)
    {
        check_shape(shape, x.size());
        check(lac_compressor_reserve(get(), shape));
        std::vector<std::uint8_t> payload(
            lac_compressor_bound(get(), shape, key.scope));
        std::size_t len = 0;
        check(lac_compressor_encode(
            get(), &key, shape, x.data(), payload.data(), payload.size(),
            &len));
        payload.resize(len);
        return payload;
    }

    /// decode returns the values of a payload, which may be hostile.
    std::vector<float> decode(
        const lac_key &key, lac_shape shape, span<const std::uint8_t> payload)
    {
        std::vector<float> x(lac_shape_values(shape));
        check(lac_compressor_reserve(get(), shape));
        check(lac_compressor_decode(
            get(), &key, shape, payload.data(), payload.size(), x.data()));
        return x;
    }

  private:
    static void check_shape(lac_shape shape, std::size_t size)
    {
        if (size != lac_shape_values(shape)) {
            check(lac_fail(
                LAC_ERR_INVALID, "values: %zu, the shape has %zu", size,
                lac_shape_values(shape)));
        }
    }
};

} // namespace laconic

#endif
