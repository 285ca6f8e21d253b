// Dense products at memory speed with float64 sums, whatever the precision of the data.
#include <cstring>
#include <numeric>
#include <vector>

#include "bindings.hpp"
#include "stored.hpp"

namespace atomlearn {
namespace {

// Entries of v, or sums, kept close while many vectors stream past: 64 KiB of float64.
constexpr Index kTile = 8192;
constexpr Index kTogether = 8;

template <bool Squared>
inline double term(double x) {
    return Squared ? x * x : x;
}

// Eight float64, in one register where the processor has such: GCC and Clang lower it elsewhere.
typedef double Lanes __attribute__((vector_size(64)));
typedef float SingleLanes __attribute__((vector_size(32)));
typedef std::int32_t IntLanes __attribute__((vector_size(32)));
typedef std::uint16_t HalfLanes __attribute__((vector_size(16)));
constexpr IntLanes kToTop = {24, 16, 8, 0, 24, 16, 8, 0};
constexpr Index kStep = 16;

ATOMLEARN_INLINE void load(const double* x, Lanes& out) {
    std::memcpy(&out, x, sizeof out);
}

ATOMLEARN_INLINE void load(const float* x, Lanes& out) {
    SingleLanes single;
    std::memcpy(&single, x, sizeof single);
    out = __builtin_convertvector(single, Lanes);
}

ATOMLEARN_INLINE void load(const std::int8_t* x, Lanes& out) {
    std::uint64_t word;
    std::memcpy(&word, x, sizeof word);
    // Each byte to the top of 32 bits, and down again with its sign.
    const std::int32_t low = static_cast<std::int32_t>(word);
    const std::int32_t high = static_cast<std::int32_t>(word >> 32);
    const IntLanes words = {low, low, low, low, high, high, high, high};
    out = __builtin_convertvector((words << kToTop) >> 24, Lanes);
}

// As Half's own conversion, eight at a time.
ATOMLEARN_INLINE void load(const Half* x, Lanes& out) {
    HalfLanes halves;
    std::memcpy(&halves, x, sizeof halves);
    const IntLanes wide = __builtin_convertvector(halves, IntLanes);
    const IntLanes bits = ((wide & 0x7fff) << 13) | ((wide & 0x8000) << 16);
    SingleLanes single;
    std::memcpy(&single, &bits, sizeof single);
    out = __builtin_convertvector(single * 0x1p112f, Lanes);
}

template <bool Squared, class T>
ATOMLEARN_INLINE void add_term(const T* x, const Lanes& v, Lanes& sum) {
    Lanes values;
    load(x, values);
    sum += v * (Squared ? values * values : values);
}

ATOMLEARN_INLINE double total(const Lanes& x) {
    return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]));
}

// Processors fetch ahead within a page only: columns shorter than that would come at half speed.
template <class T>
ATOMLEARN_INLINE void prefetch_step(const T* x) {
    __builtin_prefetch(x);
    if constexpr (sizeof(T) == sizeof(double)) __builtin_prefetch(x + kVectorLanes);
}

// Four vectors at once share the loads of v, and their four sums hide the latency of addition.
// Meanwhile the next four are fetched.
template <class T, bool Squared>
ATOMLEARN_INLINE void dot_four(const T* const* x, const T* const* next, Index start,
                               const double* v, Index n, double* out) {
    const T *a = x[0] + start, *b = x[1] + start, *c = x[2] + start, *d = x[3] + start;
    const T *e = next[0] + start, *f = next[1] + start, *g = next[2] + start, *h = next[3] + start;
    Lanes s0 = {}, s1 = {}, s2 = {}, s3 = {};
    Index i = 0;
    for (; i + kStep <= n; i += kStep) {
        prefetch_step(e + i);
        prefetch_step(f + i);
        prefetch_step(g + i);
        prefetch_step(h + i);
        for (Index j = i; j < i + kStep; j += kVectorLanes) {
            Lanes shared;
            load(v + j, shared);
            add_term<Squared>(a + j, shared, s0);
            add_term<Squared>(b + j, shared, s1);
            add_term<Squared>(c + j, shared, s2);
            add_term<Squared>(d + j, shared, s3);
        }
    }
    out[0] += total(s0);
    out[1] += total(s1);
    out[2] += total(s2);
    out[3] += total(s3);
    for (; i < n; ++i) {
        out[0] += v[i] * term<Squared>(a[i]);
        out[1] += v[i] * term<Squared>(b[i]);
        out[2] += v[i] * term<Squared>(c[i]);
        out[3] += v[i] * term<Squared>(d[i]);
    }
}

template <class T, bool Squared>
void dots_of(const Majors<T>& x, const double* v, Range majors, Range minors, double* out) {
    for (Index start = minors.begin; start < minors.end; start += kTile) {
        const Index n = std::min(kTile, minors.end - start);
        for (Index m = majors.begin; m < majors.end; m += 4) {
            // A short last group repeats its last vector and drops the surplus sums.
            const Index last = majors.end - 1;
            const T* p[8];
            for (Index g = 0; g < 8; ++g) p[g] = x.at(std::min(m + g, last));
            double sums[4] = {0, 0, 0, 0};
            vectorized<dot_four<T, Squared>>(p, p + 4, start, v + start, n, sums);
            for (Index g = 0; g < 4 && m + g < majors.end; ++g) out[m + g] += sums[g];
        }
    }
}

template <bool Squared, class T>
void dots(const Majors<T>& x, const double* v, double* out) {
    const int threads = threads_for(x.count * x.length);
    std::fill(out, out + x.count, 0.0);
    if (threads == 1) {
        dots_of<T, Squared>(x, v, {0, x.count}, {0, x.length}, out);
    } else if (x.count >= 8 * threads) {
        const Index parts = std::min<Index>(x.count / 4, 16 * threads);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (Index part = 0; part < parts; ++part)
            dots_of<T, Squared>(x, v, piece(x.count, part, parts, 4), {0, x.length}, out);
    } else {  // few long vectors: cut each
        std::vector<double> partial(static_cast<std::size_t>(threads * x.count), 0.0);
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int part = 0; part < threads; ++part)
            dots_of<T, Squared>(x, v, {0, x.count}, piece(x.length, part, threads),
                                partial.data() + part * x.count);
        for (int part = 0; part < threads; ++part)
            for (Index m = 0; m < x.count; ++m) out[m] += partial[part * x.count + m];
    }
}

// The vectors that count (v != 0) and their weights.
template <class T>
struct Weighted {
    std::vector<const T*> vectors;
    std::vector<double> weights;
    Weighted(const Majors<T>& x, const double* v) {
        vectors.reserve(x.count + kTogether);
        weights.reserve(x.count + kTogether);
        for (Index m = 0; m < x.count; ++m) {
            if (v[m] != 0.0) {
                vectors.push_back(x.at(m));
                weights.push_back(v[m]);
            }
        }
    }
    Index size() const { return static_cast<Index>(vectors.size()); }
};

// Eight vectors at once share the loads and stores of the sums; the next eight are fetched.
template <class T, bool Squared>
ATOMLEARN_INLINE void add_eight(const T* const* x, const T* const* next, const double* v,
                                Index start, Index n, double* sums) {
    const T *x0 = x[0] + start, *x1 = x[1] + start, *x2 = x[2] + start, *x3 = x[3] + start;
    const T *x4 = x[4] + start, *x5 = x[5] + start, *x6 = x[6] + start, *x7 = x[7] + start;
    const double v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
    const double v4 = v[4], v5 = v[5], v6 = v[6], v7 = v[7];
    for (Index begin = 0; begin < n; begin += kStep) {
        const Index end = std::min(begin + kStep, n);
        for (Index g = 0; g < kTogether; ++g) prefetch_step(next[g] + start + begin);
#pragma omp simd
        for (Index j = begin; j < end; ++j) {
            const double left = v0 * term<Squared>(x0[j]) + v1 * term<Squared>(x1[j]) +
                                v2 * term<Squared>(x2[j]) + v3 * term<Squared>(x3[j]);
            const double right = v4 * term<Squared>(x4[j]) + v5 * term<Squared>(x5[j]) +
                                 v6 * term<Squared>(x6[j]) + v7 * term<Squared>(x7[j]);
            sums[j] += left + right;
        }
    }
}

template <class T, bool Squared>
ATOMLEARN_INLINE void add_one(const T* x, double v, Index n, double* sums) {
#pragma omp simd
    for (Index j = 0; j < n; ++j) sums[j] += v * term<Squared>(x[j]);
}

template <class T, bool Squared>
void sums_of(const Weighted<T>& x, Range majors, Range minors, double* out) {
    for (Index start = minors.begin; start < minors.end; start += kTile) {
        const Index n = std::min(kTile, minors.end - start);
        double* sums = out + start;
        Index m = majors.begin;
        for (; m + kTogether <= majors.end; m += kTogether) {
            const T* const* now = x.vectors.data() + m;
            const T* const* next = m + 2 * kTogether <= majors.end ? now + kTogether : now;
            vectorized<add_eight<T, Squared>>(now, next, x.weights.data() + m, start, n, sums);
        }
        for (; m < majors.end; ++m)
            vectorized<add_one<T, Squared>>(x.vectors[m] + start, x.weights[m], n, sums);
    }
}

template <bool Squared, class T>
void sums(const Majors<T>& x, const double* v, double* out) {
    const Weighted<T> active(x, v);
    const int threads = threads_for(active.size() * x.length);
    std::fill(out, out + x.length, 0.0);
    if (threads == 1) {
        sums_of<T, Squared>(active, {0, active.size()}, {0, x.length}, out);
    } else if (x.length >= 1024 * threads) {
        const Index tiles = (x.length + kTile - 1) / kTile;
        const Index parts = tiles >= 8 * threads ? tiles : threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (Index part = 0; part < parts; ++part)
            sums_of<T, Squared>(active, {0, active.size()}, piece(x.length, part, parts, 8), out);
    } else {  // many short vectors: each thread adds up its own share
        std::vector<double> partial(static_cast<std::size_t>(threads * x.length), 0.0);
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int part = 0; part < threads; ++part)
            sums_of<T, Squared>(active, piece(active.size(), part, threads, 8), {0, x.length},
                                partial.data() + part * x.length);
        for (int part = 0; part < threads; ++part)
            for (Index j = 0; j < x.length; ++j) out[j] += partial[part * x.length + j];
    }
}

// Each sum on its own, in one order: it does not depend on the other pairs.
template <class T>
ATOMLEARN_INLINE double pair_sum(const T* x, const T* y, const double* v, Index n) {
    Lanes s0 = {}, s1 = {};
    Index i = 0;
    for (; i + kStep <= n; i += kStep) {
        Lanes a, b, c, d, u, w;
        load(x + i, a);
        load(y + i, b);
        load(x + i + kVectorLanes, c);
        load(y + i + kVectorLanes, d);
        load(v + i, u);
        load(v + i + kVectorLanes, w);
        s0 += u * (a * b);
        s1 += w * (c * d);
    }
    s0 += s1;
    double sum = total(s0);
    for (; i < n; ++i) sum += v[i] * (static_cast<double>(x[i]) * static_cast<double>(y[i]));
    return sum;
}

// The same for everything that files hold dense: int8 and half precision, too.
template <class F>
auto by_stored(const Matrix& array, F&& f) {
    if (array.dtype() == nb::dtype<std::int8_t>())
        return f(static_cast<const std::int8_t*>(array.data()));
    const nb::dlpack::dtype half{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    if (array.dtype() == half) return f(data_as<Half>(array));
    return by_float(array, f);
}

// X'v, or X v (or with x^2). `rows`: only where rows are contiguous.
void dense_product(const Matrix& x, bool transposed, bool squared, const Doubles& v,
                   const std::optional<Positions>& rows, const OutDoubles& out) {
    by_stored(x, [&](const auto* data) {
        const auto majors = majors_of(data, x, rows);
        const bool along = rows_contiguous(x) != transposed;
        expect(size_of(v) == (along ? majors.length : majors.count),
               "v must have an entry for each row of X (for each column in X v)");
        const auto form = [&]<bool Squared>(std::bool_constant<Squared>) {
            along ? dots<Squared>(majors, v.data(), out.data())
                  : sums<Squared>(majors, v.data(), out.data());
        };
        squared ? form(std::true_type{}) : form(std::false_type{});
    });
}

// out[p] = sum_i v_i x_i,first[p] x_i,second[p] for contiguous columns.
void pair_sums(const Matrix& x, const Positions& first, const Positions& second, const Doubles& v,
               const OutDoubles& out) {
    const Index n = size_of(x), stride = x.stride(1), count = size_of(first);
    expect(x.stride(0) == 1 || n <= 1, "X must have contiguous columns; pass np.asfortranarray(X)");
    expect(size_of(v) == n, "v must have an entry for each row of X");
    expect(size_of(second) == count, "first and second must pair up");
    expect_within(first, size_of(x, 1));
    expect_within(second, size_of(x, 1));
    by_float(x, [&]<class T>(const T* data) {
#pragma omp parallel for schedule(static) num_threads(threads_for(2 * n * count))
        for (Index pair = 0; pair < count; ++pair)
            out.data()[pair] =
                vectorized<pair_sum<T>>(data + first.data()[pair] * stride,
                                        data + second.data()[pair] * stride, v.data(), n);
    });
}

// out[:, m] = x[rows, columns[m]] from contiguous columns.
template <class T, class U>
void gather_columns(const T* x, Index stride, const Index* rows, const Positions& columns,
                    Index n_rows, U* out) {
    const Index n_columns = size_of(columns);
#pragma omp parallel for schedule(static) num_threads(threads_for(n_rows* n_columns))
    for (Index m = 0; m < n_columns; ++m) {
        const T* column = x + columns.data()[m] * stride;
        U* target = out + m * n_rows;
        for (Index i = 0; i < n_rows; ++i) target[i] = static_cast<U>(column[rows ? rows[i] : i]);
    }
}

// The same from contiguous rows: columns are walked in memory order, and whole cache lines of the
// result are filled, eight rows at a time.
template <class T, class U>
void gather_rows(const T* x, Index stride, const Index* rows, const Positions& columns,
                 Index n_rows, U* out) {
    const Index n_columns = size_of(columns);
    std::vector<Index> order(as_size(n_columns));
    std::iota(order.begin(), order.end(), Index{0});
    std::sort(order.begin(), order.end(),
              [&](Index a, Index b) { return columns.data()[a] < columns.data()[b]; });
#pragma omp parallel for schedule(static) num_threads(threads_for(n_rows* n_columns))
    for (Index block = 0; block < (n_rows + 7) / 8; ++block) {
        const Index first = 8 * block;
        const Index n = std::min<Index>(8, n_rows - first);
        const T* row[8];
        for (Index i = 0; i < n; ++i) row[i] = x + (rows ? rows[first + i] : first + i) * stride;
        for (const Index m : order) {
            const Index offset = columns.data()[m];
            U* target = out + m * n_rows + first;
            for (Index i = 0; i < n; ++i) target[i] = static_cast<U>(row[i][offset]);
        }
    }
}

void gather(const Matrix& x, const Positions& columns, const std::optional<Positions>& rows,
            const OutMatrix& out) {
    expect_within(columns, size_of(x, 1));
    if (rows) expect_within(*rows, size_of(x));
    by_float(x, [&](const auto* data) {
        by_float(out, [&]<class U>(const U*) {
            U* to = static_cast<U*>(out.data());
            rows_contiguous(x)
                ? gather_rows(data, x.stride(0), data_of(rows), columns, size_of(out), to)
                : gather_columns(data, x.stride(1), data_of(rows), columns, size_of(out), to);
        });
    });
}

}  // namespace

void bind_dense(nb::module_& m) {
    define(m, "dense_product", &dense_product);
    define(m, "gather", &gather);
    define(m, "pair_sums", &pair_sums);
}

}  // namespace atomlearn
