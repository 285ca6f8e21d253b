// Sums of many vectors at once: each entry of X is loaded once and multiplied with a row of V,
// whose sums stay in registers. Products and sums are float64 whatever X is stored in.
#include "many.hpp"

#include <cstring>
#include <type_traits>
#include <vector>

#include "compressed.hpp"

namespace atomlearn {
namespace {

// Vectors of as many numbers as a register holds: GCC 12 takes larger ones apart number by number,
// which is thirty times as slow. Bytes: 64 with AVX-512, else 32.
template <int Bytes>
struct Registers {
    typedef double Lanes __attribute__((vector_size(Bytes)));
    typedef std::int64_t Bits __attribute__((vector_size(Bytes)));
    static constexpr Index kLanes = Bytes / 8;
    static constexpr bool kMany = kLanes == kVectorLanes;  // 32 registers, else 16
    static constexpr Index kPiece = 2 * kLanes;
};

// body(Registers) with those of this processor.
template <class Body>
auto with_registers(Body&& body) {
    return simd == Simd::avx512 ? body(Registers<64>{}) : body(Registers<32>{});
}

// Rows of V that stay in the second-level cache while columns stream past, in numbers.
constexpr Index kTileNumbers = 1 << 16;
// Columns whose sums are collected before they are written.
constexpr Index kColumns = 60;
// Row-wise X: columns and rows of a tile that is copied before it is used.
constexpr Index kStrip = 512;
constexpr Index kStripRows = 32;
// Times the usual work that is worth a thread between two calls of the BLAS.
constexpr Index kBetween = 16;

// The scores of each vector, one vector after the other.
struct VectorScores {
    double* data;
    Index n_columns;
};

template <class Lanes>
ATOMLEARN_INLINE void load(const double* x, Lanes& out) {
    std::memcpy(&out, x, sizeof out);
}
template <class Lanes>
ATOMLEARN_INLINE void store(double* x, const Lanes& value) {
    std::memcpy(x, &value, sizeof value);
}

// Writes the sums of some columns, rows of `v.width` numbers, where those of each vector belong.
void write_scores(const Several& v, Index first, Index count, const double* sums,
                  const VectorScores& out) {
    for (Index k = 0; k < v.count; ++k) {
        double* scores = out.data + k * out.n_columns + first;
        for (Index j = 0; j < count; ++j) scores[j] = sums[j * v.width + k];
    }
}

// sums[c, :] += sum_i x_c[i] V[i, :] for C columns and `L` lanes of vectors.
template <class R, int L, int C>
ATOMLEARN_INLINE void add_columns(const double* const* x, Index n, const double* v, Index width,
                                  double* sums) {
    typename R::Lanes acc[C][L] = {};
    for (Index i = 0; i < n; ++i) {
        typename R::Lanes row[L];
        for (int l = 0; l < L; ++l) load(v + i * width + l * R::kLanes, row[l]);
        for (int c = 0; c < C; ++c)
            for (int l = 0; l < L; ++l) acc[c][l] += x[c][i] * row[l];
    }
    for (int c = 0; c < C; ++c) {
        for (int l = 0; l < L; ++l) {
            typename R::Lanes before;
            double* place = sums + c * width + l * R::kLanes;
            load(place, before);
            before += acc[c][l];
            store(place, before);
        }
    }
}

// The same for columns of any type, a piece at a time: one conversion for all vectors.
template <class R, class T, int L, int C>
ATOMLEARN_INLINE void add_some(const T* const* x, Index n, const double* v, Index width,
                               double* sums) {
    if constexpr (std::is_same_v<T, double>) {
        add_columns<R, L, C>(x, n, v, width, sums);
    } else {
        double converted[C][kRun];
        const double* at[C];
        for (int c = 0; c < C; ++c) at[c] = converted[c];
        for (Index start = 0; start < n; start += kRun) {
            const Index count = std::min(kRun, n - start);
            for (int c = 0; c < C; ++c)
                for (Index i = 0; i < count; ++i)
                    converted[c][i] = static_cast<double>(x[c][start + i]);
            add_columns<R, L, C>(at, count, v + start * width, width, sums);
        }
    }
}

template <class R, class T, int L, int C>
ATOMLEARN_INLINE void add_all(const T* const* x, Index count, Index n, const double* v, Index width,
                              double* sums) {
    Index c = 0;
    for (; c + C <= count; c += C) add_some<R, T, L, C>(x + c, n, v, width, sums + c * width);
    for (; c < count; ++c) add_some<R, T, L, 1>(x + c, n, v, width, sums + c * width);
}

// All vectors, in blocks of 32 and 8 where there are registers for them, else of 8.
template <class R, class T>
void add_block(const T* const* x, Index count, Index n, const Several& v, Index row, double* sums) {
    for (Index k = 0; k < v.width;) {
        const Index left = v.width - k;
        const double* part = v.data + row * v.width + k;
        if constexpr (!R::kMany) {
            vectorized<add_all<R, T, 2, 6>>(x, count, n, part, v.width, sums + k);
            k += 8;
        } else if (left >= 32) {
            vectorized<add_all<R, T, 4, 5>>(x, count, n, part, v.width, sums + k);
            k += 32;
        } else {
            vectorized<add_all<R, T, 1, 12>>(x, count, n, part, v.width, sums + k);
            k += 8;
        }
    }
}

Index rows_of_tile(const Several& v) {
    return std::max<Index>(256, kTileNumbers / v.width);
}

// All rows of V, a tile that fits into the cache at a time; the pointers end behind their columns.
template <class R, class T>
void add_tiles(std::vector<const T*>& x, Index count, Index length, const Several& v,
               double* sums) {
    const Index rows = rows_of_tile(v);
    for (Index row = 0; row < length; row += rows) {
        const Index n = std::min(rows, length - row);
        for (Index c = 0; c < count; c += kColumns)
            add_block<R>(x.data() + c, std::min(kColumns, count - c), n, v, row,
                         sums + c * v.width);
        for (Index c = 0; c < count; ++c) x[static_cast<std::size_t>(c)] += n;
    }
}

template <class R, class T>
void columns_of(const Majors<T>& x, Range columns, const Several& v, const VectorScores& out) {
    // Where V does not fit into the cache, more columns share each tile of it.
    const Index together = x.length <= rows_of_tile(v) ? kColumns : 8 * kColumns;
    std::vector<double> sums(static_cast<std::size_t>(together * v.width));
    std::vector<const T*> at(static_cast<std::size_t>(together));
    for (Index first = columns.begin; first < columns.end; first += together) {
        const Index count = std::min(together, columns.end - first);
        std::fill(sums.begin(), sums.end(), 0.0);
        for (Index c = 0; c < count; ++c) at[c] = x.at(first + c);
        add_tiles<R>(at, count, x.length, v, sums.data());
        write_scores(v, first, count, sums.data(), out);
    }
}

// A copied tile: pieces of two registers of columns, one behind the other, each row by row. The
// sums of a piece lie together too, those of a vector next to each other.
//
// Adds V[i, k] x[i, :] to all sums, a few vectors at a time, while a piece stays in the first-level
// cache.
template <class R>
ATOMLEARN_INLINE void add_tile(const double* tile, Index columns, Index rows, const double* v,
                               Index width, double* sums) {
    constexpr Index kVectors = R::kLanes, kPiece = R::kPiece;
    for (Index j = 0; j < columns; j += kPiece) {
        const double* piece = tile + j * kStripRows;
        for (Index k = 0; k < width; k += kVectors) {
            typename R::Lanes left[kVectors], right[kVectors];
            double* out = sums + j * width + k * kPiece;
#pragma GCC unroll 8
            for (Index l = 0; l < kVectors; ++l) {
                load(out + l * kPiece, left[l]);
                load(out + l * kPiece + R::kLanes, right[l]);
            }
            for (Index i = 0; i < rows; ++i) {
                typename R::Lanes x, y;
                load(piece + i * kPiece, x);
                load(piece + i * kPiece + R::kLanes, y);
                const double* weights = v + i * width + k;
#pragma GCC unroll 8
                for (Index l = 0; l < kVectors; ++l) {
                    left[l] += weights[l] * x;
                    right[l] += weights[l] * y;
                }
            }
#pragma GCC unroll 8
            for (Index l = 0; l < kVectors; ++l) {
                store(out + l * kPiece, left[l]);
                store(out + l * kPiece + R::kLanes, right[l]);
            }
        }
    }
}

// Copies rows of a tile as float64, the next row being fetched meanwhile.
template <class R, class T>
ATOMLEARN_INLINE void copy_tile(const Majors<T>& x, Index row, Index n, Index first, Index count,
                                double* tile) {
    constexpr Index kPiece = R::kPiece;
    for (Index i = 0; i < n; ++i) {
        const T* source = x.at(row + i) + first;
        const T* next = x.at(std::min(row + i + 1, x.count - 1)) + first;
        for (Index j = 0; j < count; j += kPiece) {
            for (Index c = 0; c < kPiece; c += kVectorLanes) __builtin_prefetch(next + j + c);
            double* target = tile + j * kStripRows + i * kPiece;
            const Index here = std::min(kPiece, count - j);
            for (Index c = 0; c < here; ++c) target[c] = static_cast<double>(source[j + c]);
        }
    }
}

template <class R, class T>
void rows_of(const Majors<T>& x, Range columns, const Several& v, const VectorScores& out) {
    constexpr Index kPiece = R::kPiece;
    const Index pieces = (columns.end - columns.begin + kPiece - 1) / kPiece;
    const Index strip = std::min(kStrip, pieces * kPiece);
    const auto size = static_cast<std::size_t>(strip * v.width);
    // What lies beyond the last column is zero, or of a former strip: its sums are not looked at.
    std::vector<double> tile(static_cast<std::size_t>(strip * kStripRows));
    std::vector<double> sums(size), turned(size);
    for (Index first = columns.begin; first < columns.end; first += kStrip) {
        const Index count = std::min(kStrip, columns.end - first);
        std::fill(sums.begin(), sums.end(), 0.0);
        for (Index row = 0; row < x.count; row += kStripRows) {
            const Index n = std::min(kStripRows, x.count - row);
            vectorized<copy_tile<R, T>>(x, row, n, first, count, tile.data());
            vectorized<add_tile<R>>(tile.data(), count, n, v.data + row * v.width, v.width,
                                    sums.data());
        }
        for (Index j = 0; j < count; ++j) {
            const double* from = sums.data() + j / kPiece * kPiece * v.width + j % kPiece;
            for (Index k = 0; k < v.width; ++k) turned[j * v.width + k] = from[k * kPiece];
        }
        write_scores(v, first, count, turned.data(), out);
    }
}

// sums of a few columns for `L` registers of vectors, the rows of V some entries ahead being
// fetched.
template <class R, class T, class I, int L>
ATOMLEARN_INLINE void add_entries(const Compressed<T, I>& x, Index first, Index columns,
                                  const double* v, Index width, double* sums) {
    const Index last = x.end(x.count - 1) - 1;
    for (Index c = 0; c < columns; ++c) {
        typename R::Lanes acc[L] = {};
        const Index end = x.end(first + c);
        for (Index e = x.begin(first + c); e < end; ++e) {
            const double* next =
                v + static_cast<Index>(x.indices[std::min(e + kAhead, last)]) * width;
            for (int l = 0; l < L; ++l) __builtin_prefetch(next + l * R::kLanes);
            const double* row = v + static_cast<Index>(x.indices[e]) * width;
            const double value = static_cast<double>(x.data[e]);
            for (int l = 0; l < L; ++l) {
                typename R::Lanes lanes;
                load(row + l * R::kLanes, lanes);
                acc[l] += value * lanes;
            }
        }
        for (int l = 0; l < L; ++l) store(sums + c * width + l * R::kLanes, acc[l]);
    }
}

template <class R, class T, class I>
void columns_of(const Compressed<T, I>& x, Range columns, const Several& v,
                const VectorScores& out) {
    constexpr int kEight = kVectorLanes / R::kLanes;  // registers of eight vectors
    std::vector<double> sums(static_cast<std::size_t>(kColumns * v.width));
    for (Index first = columns.begin; first < columns.end; first += kColumns) {
        const Index count = std::min(kColumns, columns.end - first);
        for (Index k = 0; k < v.width;) {
            const Index left = v.width - k;
            const double* part = v.data + k;
            double* to = sums.data() + k;
            if (left >= 32) {
                vectorized<add_entries<R, T, I, 4 * kEight>>(x, first, count, part, v.width, to);
                k += 32;
            } else {
                vectorized<add_entries<R, T, I, kEight>>(x, first, count, part, v.width, to);
                k += 8;
            }
        }
        write_scores(v, first, count, sums.data(), out);
    }
}

// Runs body(range of columns, out) over all columns.
template <class Body>
void over_columns(const VectorScores& out, Index parts, int threads, Body&& body) {
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (Index part = 0; part < parts; ++part)
        body(piece(out.n_columns, part, parts, kColumns), out);
}

}  // namespace

void add_dots(const double* const* x, Index count, Index n, const Several& v, double* sums) {
    // Who asks for few products asks the BLAS in between, whose threads still turn.
    const int threads = threads_for(count * n * std::max<Index>(1, v.width / 8) / kBetween);
    with_registers([&](auto registers) {
        in_parallel(threads, [&](int part) {
            const Range columns = piece(count, part, threads);
            std::vector<const double*> at(x + columns.begin, x + columns.end);
            add_tiles<decltype(registers)>(at, columns.size(), n, v,
                                           sums + columns.begin * v.width);
        });
    });
}

namespace {

// out (vectors x columns) = V'X.
void many_dense(const Matrix& x, const Rows& v, const std::optional<Positions>& rows,
                const OutDoubleMatrix& out) {
    const Several vectors{v.data(), size_of(v, 1), size_of(out)};
    by_float(x, [&](const auto* data) {
        const auto majors = majors_of(data, x, rows);
        const bool by_rows = rows_contiguous(x);
        const Index n_columns = by_rows ? majors.length : majors.count;
        expect(size_of(v) == (by_rows ? majors.count : majors.length),
               "V must have a row for each row of X");
        const Index blocks = std::max<Index>(1, vectors.width / 8);
        const int threads = threads_for(majors.count * majors.length * blocks);
        const Index parts =
            threads == 1 ? 1 : std::clamp<Index>(n_columns / kStrip, 1, 16 * threads);
        with_registers([&](auto registers) {
            using R = decltype(registers);
            over_columns({out.data(), n_columns}, parts, threads,
                         [&](Range columns, const auto& scores) {
                             by_rows ? rows_of<R>(majors, columns, vectors, scores)
                                     : columns_of<R>(majors, columns, vectors, scores);
                         });
        });
    });
}

// The same for X by compressed columns.
void many_csc(const Vector& data, const Vector& indices, const Vector& indptr, const Rows& v,
              const OutDoubleMatrix& out) {
    const Several vectors{v.data(), size_of(v, 1), size_of(out)};
    by_compressed(data, indices, indptr, size_of(v), std::nullopt, [&](const auto& x) {
        const int threads = threads_for(static_cast<Index>(x.indptr[x.count]) * vectors.width);
        with_registers([&](auto registers) {
            using R = decltype(registers);
            over_columns({out.data(), x.count}, threads == 1 ? 1 : 16 * threads, threads,
                         [&](Range columns, const auto& scores) {
                             columns_of<R>(x, columns, vectors, scores);
                         });
        });
    });
}

}  // namespace

void bind_many(nb::module_& m) {
    define(m, "many_dense", &many_dense);
    define(m, "many_csc", &many_csc);
}

}  // namespace atomlearn
