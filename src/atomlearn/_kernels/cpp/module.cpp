// The Python module: types are looked at here, and the lock is released for every kernel.
#include <nanobind/stl/pair.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "active_set.hpp"
#include "bindings.hpp"
#include "blas.hpp"
#include "codes.hpp"
#include "group_newton.hpp"
#include "kernels.hpp"
#include "ksupport_root.hpp"
#include "levels.hpp"
#include "stored.hpp"

namespace atomlearn {
namespace {

// The same for everything that files hold dense: int8 and half precision, too.
template <class Array, class F>
auto by_stored(const Array& array, F&& f) {
    if (array.dtype() == nb::dtype<std::int8_t>())
        return f(static_cast<const std::int8_t*>(array.data()));
    const nb::dlpack::dtype half{static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    if (array.dtype() == half) return f(static_cast<const Half*>(array.data()));
    return by_float(array, f);
}

// `dots`: the result runs over the contiguous vectors; else it runs along them. rows: only where
// rows are contiguous.
void dense_product(const Matrix& x, bool rows_contiguous, bool dots, bool squared, const Doubles& v,
                   const std::optional<Positions>& rows, const OutDoubles& out) {
    const nb::gil_scoped_release release;
    by_stored(x, [&]<class T>(const T* data) {
        const int major = rows_contiguous ? 0 : 1;
        const Majors<T> majors{data, x.stride(major), rows ? size_of(*rows) : size_of(x, major),
                               size_of(x, 1 - major), data_of(rows)};
        dots ? dense_dots(majors, v.data(), out.data(), squared)
             : dense_sums(majors, v.data(), out.data(), squared);
    });
}

void gather(const Matrix& x, bool rows_contiguous, const Positions& columns,
            const std::optional<Positions>& rows, const OutMatrix& out) {
    const nb::gil_scoped_release release;
    by_float(x, [&](const auto* data) {
        by_float(out, [&]<class U>(const U*) {
            dense_gather(data, rows_contiguous ? Index{x.stride(0)} : 1,
                         rows_contiguous ? 1 : Index{x.stride(1)}, data_of(rows), size_of(out),
                         columns.data(), size_of(columns), static_cast<U*>(out.data()));
        });
    });
}

Genotypes genotypes(const Bytes& data, Index n_samples, const Doubles& means) {
    return {data.data(), (n_samples + 3) / 4, n_samples, size_of(means), means.data()};
}

void dots_of_genotypes(const Bytes& data, Index n_samples, const Doubles& means, bool squared,
                       const Doubles& v, const OutDoubles& out) {
    const nb::gil_scoped_release release;
    genotype_dots(genotypes(data, n_samples, means), v.data(), out.data(), squared);
}

void sums_of_genotypes(const Bytes& data, Index n_samples, const Doubles& means, const Doubles& w,
                       const OutDoubles& out) {
    const nb::gil_scoped_release release;
    genotype_sums(genotypes(data, n_samples, means), w.data(), out.data());
}

void counts_of_genotypes(const Bytes& data, Index n_samples, const Doubles& means,
                         const OutPositions& out) {
    const nb::gil_scoped_release release;
    genotype_counts(genotypes(data, n_samples, means), out.data());
}

void gather_genotypes(const Bytes& data, Index n_samples, const Doubles& means,
                      const OutMatrix& out) {
    const nb::gil_scoped_release release;
    by_float(out, [&]<class U>(const U*) {
        genotype_gather(genotypes(data, n_samples, means), static_cast<U*>(out.data()));
    });
}

void pair_sums(const Matrix& x, const Positions& first, const Positions& second, const Doubles& v,
               const OutDoubles& out) {
    const nb::gil_scoped_release release;
    by_float(x, [&](const auto* data) {
        dense_pair_sums(data, Index{x.stride(1)}, size_of(x), first.data(), second.data(),
                        size_of(first), v.data(), out.data());
    });
}

void sparse_product(const Vector& data, const Vector& indices, const Vector& indptr, bool dots,
                    bool squared, const Doubles& v, const OutDoubles& out) {
    const nb::gil_scoped_release release;
    const Index length = dots ? size_of(v) : size_of(out);
    by_compressed(data, indices, indptr, length, std::nullopt, [&](const auto& x) {
        dots ? sparse_dots(x, v.data(), out.data(), squared)
             : sparse_sums(x, v.data(), out.data(), squared);
    });
}

void sparse_gram(const Vector& data, const Vector& indices, const Vector& indptr,
                 const Doubles& weights, const OutMatrix& out) {
    const nb::gil_scoped_release release;
    by_compressed(data, indices, indptr, size_of(out), std::nullopt, [&](const auto& x) {
        sparse_squares(x, weights.data(), static_cast<double*>(out.data()));
    });
}

void sparse_pairs(const Vector& data, const Vector& indices, const Vector& indptr,
                  const Positions& first, const Positions& second, const Doubles& v,
                  const OutDoubles& out) {
    const nb::gil_scoped_release release;
    by_compressed(data, indices, indptr, size_of(v), std::nullopt, [&](const auto& x) {
        sparse_pair_sums(x, first.data(), second.data(), size_of(first), v.data(), out.data());
    });
}

// Calls f with the coded columns, whose rows are given by compressed arrays or are all of them.
template <class F>
void by_codes(const Bytes& codes, const std::optional<Vector>& indices,
              const std::optional<Vector>& indptr, Index n_rows, const Positions& starts, F&& f) {
    const nb::gil_scoped_release release;
    if (!indices)
        return f(Codes<std::int32_t>{codes.data(), nullptr, nullptr, n_rows, starts.data()});
    by_index(*indices, [&]<class I>(const I* rows) {
        f(Codes<I>{codes.data(), rows, static_cast<const I*>(indptr->data()), n_rows,
                   starts.data()});
    });
}

void histograms_of_codes(const Bytes& codes, const std::optional<Vector>& indices,
                         const std::optional<Vector>& indptr, Index n_rows, const Positions& starts,
                         const Positions& columns, const Positions& offsets, const Doubles& v,
                         Index width, const OutDoubles& out) {
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        code_histograms(x, columns.data(), offsets.data(), size_of(columns), v.data(), width,
                        out.data());
    });
}

void scores_of_thermometers(const Bytes& codes, const std::optional<Vector>& indices,
                            const std::optional<Vector>& indptr, Index n_rows,
                            const Positions& starts, const Doubles& values, const Positions& zero,
                            const Positions& columns, const Positions& offsets, const Doubles& v,
                            Index width, bool norms, const OutDoubles& out) {
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        thermometer_scores(x, values.data(), zero.data(), columns.data(), offsets.data(),
                           size_of(columns), v.data(), width, norms, out.data());
    });
}

void scores_of_tables(const Bytes& codes, const std::optional<Vector>& indices,
                      const std::optional<Vector>& indptr, Index n_rows, const Positions& starts,
                      const Doubles& tables, const Positions& begins, const Positions& columns,
                      const Positions& offsets, const Doubles& v, Index width, bool squared,
                      const OutDoubles& out) {
    by_codes(codes, indices, indptr, n_rows, starts, [&](const auto& x) {
        table_scores(x, tables.data(), begins.data(), columns.data(), offsets.data(),
                     size_of(columns), v.data(), width, squared, out.data());
    });
}

void levels_of_columns(const Vector& values, const std::optional<Vector>& rows,
                       const Positions& begin, const Doubles& weight, const Doubles& shares,
                       bool uniform, const OutDoubles& levels, const OutPositions& counts,
                       const OutPositions& zero) {
    const nb::gil_scoped_release release;
    const Binning binning{shares.data(), size_of(shares), uniform};
    const Index n_columns = size_of(begin) - 1;
    const Index n_rows = size_of(weight);
    by_float(values, [&]<class T>(const T* data) {
        const auto found = [&]<class I>(const I* places) {
            find_levels(Listed<T, I>{data, places, begin.data(), n_columns, n_rows}, weight.data(),
                        binning, levels.data(), counts.data(), zero.data());
        };
        if (!rows) return found(static_cast<const std::int32_t*>(nullptr));
        by_index(*rows, found);
    });
}

void codes_of_columns(const Vector& values, const Positions& begin, const Doubles& levels,
                      const Positions& starts, const OutBytes& codes) {
    const nb::gil_scoped_release release;
    by_float(values, [&](auto* data) {
        encode_columns(data, begin.data(), size_of(begin) - 1, levels.data(), starts.data(),
                       codes.data());
    });
}

void joint_sums(const Bytes& first, const Bytes& second, const Doubles& weights,
                const OutDoubleMatrix& out) {
    const nb::gil_scoped_release release;
    joint_histogram(first.data(), second.data(), size_of(weights), size_of(out), size_of(out, 1),
                    weights.data(), out.data());
}

void sums_of_pairs(const Bytes& codes, Index n_levels, const Positions& first,
                   const Positions& second, const Doubles& weights, Index width,
                   const OutDoubles& out) {
    const nb::gil_scoped_release release;
    const Index n_rows = size_of(weights) / width;
    pair_histograms(codes.data(), n_rows, n_levels, first.data(), second.data(), size_of(first),
                    weights.data(), width, out.data());
}

int top(const Vector& z, const OutPositions& indices, const OutDoubles& values) {
    const nb::gil_scoped_release release;
    return static_cast<int>(by_float(z, [&](auto* data) {
        return top_magnitude(data, size_of(z), size_of(indices), indices.data(), values.data());
    }));
}

std::pair<int, double> norm_of_top(const Vector& z, Index count) {
    const nb::gil_scoped_release release;
    double norm = 0.0;
    const Status status =
        by_float(z, [&](auto* data) { return top_norm(data, size_of(z), count, &norm); });
    return {static_cast<int>(status), norm};
}

// method -1: ours; else one of the alternatives.
std::pair<int, double> prox(int method, const Vector& v, Index k, double step, const OutVector& w) {
    const nb::gil_scoped_release release;
    double scale = 0.0;
    const Status status = by_float(v, [&]<class T>(const T* data) {
        const Index n = size_of(v);
        T* out = static_cast<T*>(w.data());
        return method < 0 ? ksupport_prox(data, n, k, step, out, &scale)
                          : ksupport_prox_alternative(static_cast<Alternative>(method), data, n, k,
                                                      step, out, &scale);
    });
    return {static_cast<int>(status), scale};
}

// bounds: F at 0, and the ends of the interval that the root lies in.
std::pair<int, double> multiplier(const Doubles& v, Index k, double amount, bool penalized,
                                  const Doubles& bounds, const OutDoubles& room) {
    const nb::gil_scoped_release release;
    const double* b = bounds.data();
    double mu = 0.0;
    const Status status = ksupport_multiplier(v.data(), size_of(v), k, amount, penalized, b[0],
                                              b[1], b[2], room.data(), &mu);
    return {static_cast<int>(status), mu};
}

std::pair<int, double> gauge(const Vector& w, Index k) {
    const nb::gil_scoped_release release;
    double value = 0.0;
    const Status status =
        by_float(w, [&](auto* data) { return ksupport_gauge(data, size_of(w), k, &value); });
    return {static_cast<int>(status), value};
}

// counts: in and out the atoms in use and the updates of their factor; out the full steps, drop
// steps and refactorizations. figures: in and out sigma; out the least pivot ratio, the drift and
// the multiplier of the radius.
int active_set_program(const DoubleMatrix& gram, const Doubles& linear, bool linear_is_gradient,
                       const std::optional<Doubles>& price, double coupling, double ridge,
                       double radius, bool equality, double level, bool is_signed,
                       const OutDoubleMatrix& factor, const OutPositions& order,
                       const OutPositions& counts, const OutDoubles& figures,
                       const OutDoubles& weights, Index batch, Index max_pivots) {
    const nb::gil_scoped_release release;
    const QuadraticProgram program{gram.data(),
                                   Index{gram.stride(0)},
                                   size_of(weights),
                                   linear.data(),
                                   linear_is_gradient,
                                   price ? price->data() : nullptr,
                                   coupling,
                                   ridge,
                                   radius,
                                   equality,
                                   level,
                                   is_signed};
    ActiveFactor state{factor.data(),    size_of(factor, 1), order.data(),
                       counts.data()[0], counts.data()[1],   figures.data()[0]};
    const QPOutcome outcome = active_set(program, state, weights.data(), batch, max_pivots);
    counts.data()[0] = state.count;
    counts.data()[1] = state.updates;
    counts.data()[2] = outcome.full_steps;
    counts.data()[3] = outcome.drop_steps;
    counts.data()[4] = outcome.refactorizations;
    figures.data()[0] = state.sigma;
    figures.data()[1] = outcome.smallest_pivot;
    figures.data()[2] = outcome.drift;
    figures.data()[3] = outcome.multiplier;
    return static_cast<int>(outcome.status);
}

// Takes the function pointer out of a capsule of SciPy's; false where it is not as expected.
bool provide_blas(const char* name, const nb::object& capsule) {
    if (!PyCapsule_CheckExact(capsule.ptr())) return false;
    const char* signature = PyCapsule_GetName(capsule.ptr());
    if (signature == nullptr) return false;
    return blas::provide(name, signature, PyCapsule_GetPointer(capsule.ptr(), signature));
}

// matrix: the Gram matrix with `linear` (p), or the columns with the target (n). counts: out the
// steps and the systems solved. figures: out the objective and the gap.
int scalings_of_groups(const DoubleMatrix& matrix, bool is_gram, const Doubles& linear,
                       double squared_target, const Positions& starts, const Positions& members,
                       const Doubles& limit, const OutDoubles& scalings, const OutDoubles& slopes,
                       double gap_target, Index max_steps, const OutPositions& counts,
                       const OutDoubles& figures) {
    const nb::gil_scoped_release release;
    LeastSquares loss{};
    loss.squared_target = squared_target;
    if (is_gram) {
        loss.gram = matrix.data();
        loss.gram_stride = Index{matrix.stride(0)};
        loss.linear = linear.data();
    } else {
        loss.columns = matrix.data();
        loss.stride = Index{matrix.stride(1)};
        loss.length = size_of(matrix);
        loss.target = linear.data();
    }
    const Groups groups{starts.data(), members.data(), size_of(limit), size_of(slopes)};
    const NewtonOutcome outcome = group_newton(loss, groups, limit.data(), scalings.data(),
                                               slopes.data(), gap_target, max_steps);
    counts.data()[0] = outcome.steps;
    counts.data()[1] = outcome.systems;
    figures.data()[0] = outcome.objective;
    figures.data()[1] = outcome.gap;
    return static_cast<int>(outcome.status);
}

}  // namespace
}  // namespace atomlearn

constexpr const char* kSimdNames[] = {"baseline", "avx2", "avx512"};

// The best of this processor, but no better than ATOMLEARN_SIMD.
void choose_simd() {
    using atomlearn::simd, atomlearn::Simd;
#ifdef ATOMLEARN_X86
    if (__builtin_cpu_supports("x86-64-v3")) simd = Simd::avx2;
    if (__builtin_cpu_supports("x86-64-v4")) simd = Simd::avx512;
#endif
    const char* given = std::getenv("ATOMLEARN_SIMD");
    const std::string limit = given ? given : "";
    if (limit.empty()) return;
    const auto* found = std::find(std::begin(kSimdNames), std::end(kSimdNames), limit);
    if (found == std::end(kSimdNames))
        throw std::invalid_argument("ATOMLEARN_SIMD must be baseline, avx2 or avx512, got \"" +
                                    limit + "\": set one of these, or unset the variable");
    simd = std::min(simd, static_cast<Simd>(found - kSimdNames));
}

NB_MODULE(_native, m) {
    choose_simd();
    // Blocks that outlive the module at the end of a process are no leak.
    nb::set_leak_warnings(false);
    using namespace atomlearn;
    m.def("simd", [] { return kSimdNames[static_cast<int>(simd)]; });
    define(m, "dense_product", &dense_product);
    define(m, "gather", &gather);
    define(m, "genotype_dots", &dots_of_genotypes);
    define(m, "genotype_sums", &sums_of_genotypes);
    define(m, "genotype_counts", &counts_of_genotypes);
    define(m, "genotype_gather", &gather_genotypes);
    define(m, "pair_sums", &pair_sums);
    define(m, "sparse_product", &sparse_product);
    define(m, "sparse_gram", &sparse_gram);
    define(m, "sparse_pairs", &sparse_pairs);
    define(m, "code_histograms", &histograms_of_codes);
    define(m, "thermometer_scores", &scores_of_thermometers);
    define(m, "table_scores", &scores_of_tables);
    define(m, "find_levels", &levels_of_columns);
    define(m, "encode_columns", &codes_of_columns);
    define(m, "joint_histogram", &joint_sums);
    define(m, "pair_histograms", &sums_of_pairs);
    define(m, "top", &top);
    define(m, "norm_of_top", &norm_of_top);
    define(m, "prox", &prox);
    define(m, "multiplier", &multiplier);
    define(m, "gauge", &gauge);
    define(m, "active_set", &active_set_program);
    define(m, "provide_blas", &provide_blas);
    define(m, "group_newton", &scalings_of_groups);
    bind_pairs(m);
    bind_sampled(m);
    watch_forks();
    m.def("max_threads", &threads_allowed);
    // Of the thread that calls it: OpenMP keeps the number for each.
    m.def("set_threads", [](int threads) { omp_set_num_threads(threads); });
    bind_many(m);
    bind_pivoting(m);
    bind_newton(m);
}
