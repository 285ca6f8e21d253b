// Large products of genotypes with many vectors: searched in bytes, computed in float64.
//
// A vector is s (256 h + l) but for half a step s an entry, with digits h and l of a byte each. So
// X'V is, within half a step for each copy counted, a product of bytes, of which a processor makes
// eight times as many at a time as of numbers. Only columns that may reach a bound are multiplied
// again, in float64: which columns are found, and their values, do not depend on the digits.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "bindings.hpp"
#include "many.hpp"
#include "stored.hpp"

#ifdef ATOMLEARN_X86
#define ATOMLEARN_BYTES \
    ATOMLEARN_FOR("avx512f,avx512dq,avx512bw,avx512vl,avx512vbmi,avx512vnni,fma")
#include <immintrin.h>
#endif

namespace atomlearn {
namespace {

constexpr Index kLanes = 16;  // vectors of a register, with four samples each
constexpr Index kRegister = kLanes * kQuad;
constexpr Index kSpan = 1 << 22;  // samples whose sums of bytes fit into 32 bits
constexpr Index kSteps = 127 * 256;

// Vectors as two digits a byte each: registers of sixteen vectors and four samples, those of the
// high digits and those of the low ones in turn; v_ik = steps[k] (256 high + low) within half of
// steps[k].
struct Digits {
    const std::int8_t* data;
    const double* steps;
    Index registers;
};

constexpr std::uint8_t kCopies[4] = {2, 0, 1, 0};

// Copies counted of a tile of a column, 0 where missing or beyond its end: a byte has those of four
// samples, which are looked up together.
void copies_of(const std::uint8_t* column, Index first, Index n_samples, Index size,
               std::uint8_t* out) {
    static const auto four = [] {
        std::array<std::array<std::uint8_t, kQuad>, 256> table;
        for (std::size_t byte = 0; byte < 256; ++byte)
            for (std::size_t i = 0; i < kQuad; ++i) table[byte][i] = kCopies[(byte >> 2 * i) & 3];
        return table;
    }();
    const Index count = std::min(size, n_samples - first), bytes = count / kQuad;
    column += first / kQuad;
    for (Index b = 0; b < bytes; ++b) std::memcpy(out + kQuad * b, four[column[b]].data(), kQuad);
    for (Index i = kQuad * bytes; i < count; ++i)
        out[i] = kCopies[(column[bytes] >> (2 * (i % kQuad))) & 3];
    std::fill(out + count, out + size, std::uint8_t{0});
}

// sums[c][r] += products of the copies of kColumns columns with R registers of digits.
template <int R>
ATOMLEARN_INLINE void add_bytes(const std::uint8_t (*copies)[kRun], const std::int8_t* digits,
                                Index quads, Index registers, std::int32_t* const* sums) {
    for (Index q = 0; q < quads; ++q) {
        const std::int8_t* row = digits + q * registers * kRegister;
        for (Index c = 0; c < kColumns; ++c) {
            const std::uint8_t* x = copies[c] + kQuad * q;
            for (Index lane = 0; lane < R * kLanes; ++lane) {
                const std::int8_t* d = row + kQuad * lane;
                sums[c][lane] += x[0] * d[0] + x[1] * d[1] + x[2] * d[2] + x[3] * d[3];
            }
        }
    }
}

#ifdef ATOMLEARN_X86
// 64 genotypes at a time: a byte each of two words of codes, looked up among the copies.
ATOMLEARN_BYTES void fast_copies(const std::uint8_t* column, Index first, Index n_samples,
                                 Index size, std::uint8_t* out) {
    alignas(64) std::uint8_t shifts[64];
    for (int b = 0; b < 64; ++b) shifts[b] = static_cast<std::uint8_t>(2 * (b % 32));
    const __m512i places = _mm512_load_si512(shifts);
    const __m512i values = _mm512_set1_epi32(0x00010002);
    const Index bytes = (n_samples + kQuad - 1) / kQuad;
    for (Index i = 0; i < size; i += kRegister) {
        std::uint64_t words[2] = {~0ull, ~0ull};
        const Index start = (first + i) / kQuad;
        if (start < bytes)
            std::memcpy(words, column + start, as_size(std::min<Index>(16, bytes - start)));
        const __m512i both =
            _mm512_inserti64x4(_mm512_set1_epi64(static_cast<long long>(words[0])),
                               _mm256_set1_epi64x(static_cast<long long>(words[1])), 1);
        const __m512i codes =
            _mm512_and_si512(_mm512_multishift_epi64_epi8(places, both), _mm512_set1_epi8(3));
        _mm512_storeu_si512(out + i, _mm512_shuffle_epi8(values, codes));
    }
}

template <int R>
ATOMLEARN_BYTES void fast_bytes(const std::uint8_t (*copies)[kRun], const std::int8_t* digits,
                                Index quads, Index registers, std::int32_t* const* sums) {
    __m512i acc[kColumns][R];
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) acc[c][r] = _mm512_loadu_si512(sums[c] + r * kLanes);
    for (Index q = 0; q < quads; ++q) {
        const std::int8_t* row = digits + q * registers * kRegister;
        __m512i d[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) d[r] = _mm512_loadu_si512(row + r * kRegister);
#pragma GCC unroll 8
        for (int c = 0; c < kColumns; ++c) {
            std::int32_t four;
            std::memcpy(&four, copies[c] + kQuad * q, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
            // By name: of the intrinsic GCC copies every sum to and fro.
#pragma GCC unroll 8
            for (int r = 0; r < R; ++r)
                asm("vpdpbusd %2, %1, %0" : "+v"(acc[c][r]) : "v"(x), "v"(d[r]));
        }
    }
#pragma GCC unroll 8
    for (int c = 0; c < kColumns; ++c)
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) _mm512_storeu_si512(sums[c] + r * kLanes, acc[c][r]);
}

bool is_fast() {
    static const bool found =
        __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
    return found && simd == Simd::avx512;
}

// The same without AVX-512: products of two samples in sums of 16 bits, which hold those of kShort
// quads, digits being at least -128.
template <int R>
ATOMLEARN_FOR("avx2")
void short_bytes(const std::uint8_t (*copies)[kRun], const std::int8_t* digits, Index quads,
                 Index registers, std::int32_t* const* sums) {
    constexpr Index kShort = 64, kHalf = kLanes / 2;
    const __m256i ones = _mm256_set1_epi16(1);
    for (int r = 0; r < R; ++r) {
        for (Index first = 0; first < quads; first += kShort) {
            const Index end = std::min(first + kShort, quads);
            __m256i acc[kColumns][2] = {};
            for (Index q = first; q < end; ++q) {
                const auto* row =
                    reinterpret_cast<const __m256i*>(digits + (q * registers + r) * kRegister);
                const __m256i d[2] = {_mm256_loadu_si256(row), _mm256_loadu_si256(row + 1)};
#pragma GCC unroll 8
                for (int c = 0; c < kColumns; ++c) {
                    std::int32_t four;
                    std::memcpy(&four, copies[c] + kQuad * q, sizeof four);
                    const __m256i x = _mm256_set1_epi32(four);
#pragma GCC unroll 8
                    for (int h = 0; h < 2; ++h)
                        acc[c][h] = _mm256_add_epi16(acc[c][h], _mm256_maddubs_epi16(x, d[h]));
                }
            }
#pragma GCC unroll 8
            for (int c = 0; c < kColumns; ++c)
#pragma GCC unroll 8
                for (int h = 0; h < 2; ++h) {
                    auto* to = reinterpret_cast<__m256i*>(sums[c] + r * kLanes + h * kHalf);
                    const __m256i more = _mm256_madd_epi16(acc[c][h], ones);
                    _mm256_storeu_si256(to, _mm256_add_epi32(_mm256_loadu_si256(to), more));
                }
        }
    }
}
#endif

void copies_in_tile(const std::uint8_t* column, Index first, Index n_samples, Index size,
                    std::uint8_t* out) {
#ifdef ATOMLEARN_X86
    if (is_fast()) return fast_copies(column, first, n_samples, size, out);
#endif
    copies_of(column, first, n_samples, size, out);
}

template <int R>
void add_tile(const std::uint8_t (*copies)[kRun], const std::int8_t* digits, Index quads,
              Index registers, std::int32_t* const* sums) {
#ifdef ATOMLEARN_X86
    if (is_fast()) return fast_bytes<R>(copies, digits, quads, registers, sums);
    if (simd != Simd::baseline) return short_bytes<R>(copies, digits, quads, registers, sums);
#endif
    vectorized<add_bytes<R>>(copies, digits, quads, registers, sums);
}

// sums[j, r * 16 ...] of `count` columns over the samples from first to end.
void bytes_of_block(const Genotypes& x, Index column, Index count, Index first, Index end,
                    const Digits& digits, std::int32_t* sums) {
    const Index registers = digits.registers, width = registers * kLanes;
    std::uint8_t copies[kColumns][kRun] = {};
    std::int32_t spare[4 * kLanes] = {};
    for (Index row = first; row < end; row += kRun) {
        const Index quads = (std::min(kRun, end - row) + kQuad - 1) / kQuad;
        const std::int8_t* at = digits.data + row / kQuad * registers * kRegister;
        for (Index j = 0; j < count; j += kColumns) {
            for (Index c = 0; c < kColumns && j + c < count; ++c)
                copies_in_tile(x.data + (column + j + c) * x.stride, row, x.n_samples, kRun,
                               copies[c]);
            for (Index r = 0; r < registers;) {
                std::int32_t* to[kColumns];
                for (Index c = 0; c < kColumns; ++c)
                    to[c] = j + c < count ? sums + (j + c) * width + r * kLanes : spare;
                if (registers - r >= 4) {
                    add_tile<4>(copies, at + r * kRegister, quads, registers, to);
                    r += 4;
                } else {
                    add_tile<2>(copies, at + r * kRegister, quads, registers, to);
                    r += 2;
                }
            }
        }
    }
}

// out[c * width + k] = sum_i x_ic v_ik of these columns: a tile of each is unpacked for all
// vectors, and each tile of V is read once for all columns.
void exact(const Genotypes& x, const std::vector<Index>& columns, const Several& v, double* out) {
    const Index count = static_cast<Index>(columns.size());
    std::vector<double> tile(as_size(count * kRun));
    std::vector<const double*> at;
    for (Index c = 0; c < count; ++c) at.push_back(tile.data() + c * kRun);
    std::fill(out, out + count * v.width, 0.0);
    for (Index row = 0; row < x.n_samples; row += kRun) {
        const Index size = std::min(kRun, x.n_samples - row);
        for (Index c = 0; c < count; ++c) {
            const Index column = columns[as_size(c)];
            const std::uint8_t* codes = x.data + column * x.stride + row / kQuad;
            const double numbers[4] = {2.0, x.means[column], 1.0, 0.0};
            for (Index i = 0; i < size; ++i)
                tile[as_size(c * kRun + i)] = numbers[(codes[i / kQuad] >> (2 * (i % kQuad))) & 3];
        }
        add_dots(at.data(), count, size, {v.data + row * v.width, v.width, v.count}, out);
    }
}

// Adds mean times the sum over missing genotypes: few, so they are looked for a word at a time.
ATOMLEARN_INLINE void add_missing(const std::uint8_t* column, Index n, double mean,
                                  const Several& v, double* out) {
    if (mean == 0.0) return;
    const Index bytes = (n + kQuad - 1) / kQuad;
    for (Index start = 0; start < bytes; start += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, column + start, as_size(std::min<Index>(8, bytes - start)));
        std::uint64_t gone = word & ~(word >> 1) & kLow;
        for (; gone; gone &= gone - 1) {
            const Index i = kQuad * start + __builtin_ctzll(gone) / 2;
            if (i >= n) break;
            const double* row = v.data + i * v.width;
            for (Index k = 0; k < v.width; ++k) out[k] += mean * row[k];
        }
    }
}

Index digit_registers(Index width) {
    return 2 * ((width + kLanes - 1) / kLanes);
}

// A NumPy array of these numbers, in rows of `width` (0: a vector).
template <class T>
nb::object owned(std::vector<T>&& numbers, Index width = 0) {
    auto* kept = new std::vector<T>(std::move(numbers));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    const std::size_t size = kept->size(), columns = as_size(width);
    const std::size_t shape[2] = {columns ? size / columns : size, columns};
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), columns ? 2 : 1, shape, owner));
}

// The digits of vectors, and the steps of each.
nb::object genotype_digits(const Rows& v) {
    const Index n = size_of(v), width = size_of(v, 1), registers = digit_registers(width);
    std::vector<std::int8_t> digits(as_size((n + kQuad - 1) / kQuad * registers * kRegister));
    std::vector<double> steps(as_size(width));
    for (Index i = 0; i < n; ++i)
        for (Index k = 0; k < width; ++k) {
            const double size = std::abs(v.data()[i * width + k]);
            if (!(size <= steps[k])) steps[k] = size;
        }
    for (Index k = 0; k < width; ++k) steps[k] /= kSteps;
    for (Index i = 0; i < n; ++i)
        for (Index k = 0; k < width; ++k) {
            if (!(steps[k] > 0.0 && std::isfinite(steps[k]))) continue;
            const auto q = static_cast<Index>(std::nearbyint(v.data()[i * width + k] / steps[k]));
            const Index high = (q + 128) >> 8;
            std::int8_t* at = digits.data() +
                              ((i / kQuad) * registers + 2 * (k / kLanes)) * kRegister +
                              kQuad * (k % kLanes) + i % kQuad;
            at[0] = static_cast<std::int8_t>(high);
            at[kRegister] = static_cast<std::int8_t>(q - 256 * high);
        }
    return nb::make_tuple(owned(std::move(digits)), owned(std::move(steps)));
}

using DigitArray = nb::ndarray<const std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The columns with |z_jk| >= bounds[k] for some of `count` vectors, in order, and all their z,
// z_jk = (sum_i v_ik x_ij - centers[j] totals[k]) factors[j]; copies[j] = sum_i x_ij where known.
// One thread a call.
nb::object genotype_found(const Bytes& data, const Doubles& means, const Rows& rows, Index count,
                          const DigitArray& digit_array, const Doubles& steps,
                          const Doubles& centers, const Doubles& factors, const Doubles& copies,
                          const Doubles& totals, const Doubles& bounds) {
    const Index n = size_of(rows), width = size_of(rows, 1);
    const Several v{rows.data(), width, count};
    const Genotypes x{data.data(), (n + 3) / 4, n, size_of(means), means.data()};
    const Digits digits{digit_array.data(), steps.data(), digit_registers(width)};
    const Index lanes = digits.registers * kLanes;
    std::vector<Index> columns;
    std::vector<double> values;
    {
        const nb::gil_scoped_release release;
        std::vector<std::int32_t> sums(as_size(kRun * lanes));
        std::vector<double> rough(as_size(kRun * width));
        // Sets z[k] less its center, times its factor, for the vectors asked for; whether one may
        // reach its bound, the others being off by so much at most.
        const auto reaches = [&](Index column, double* of, double off, double share) {
            const double center = centers.data()[column], factor = factors.data()[column];
            bool any = false;
            for (Index k = 0; k < count; ++k) {
                of[k] = (of[k] - center * totals.data()[k]) * factor;
                const double most = std::abs(of[k]) + off * digits.steps[k] * std::abs(factor);
                any |= !(most < bounds.data()[k] * share);
            }
            return any;
        };
        for (Index first = 0; first < x.count; first += kRun) {
            const Index size = std::min(kRun, x.count - first);
            std::fill(rough.begin(), rough.end(), 0.0);
            for (Index row = 0; row < n; row += kSpan) {
                std::fill(sums.begin(), sums.end(), 0);
                bytes_of_block(x, first, size, row, std::min(row + kSpan, n), digits, sums.data());
                for (Index j = 0; j < size; ++j)
                    for (Index k = 0; k < width; ++k) {
                        const std::int32_t* high =
                            sums.data() + j * lanes + 2 * (k / kLanes) * kLanes + k % kLanes;
                        rough[as_size(j * width + k)] +=
                            digits.steps[k] * (256.0 * high[0] + high[kLanes]);
                    }
            }
            std::vector<Index> likely;
            for (Index column = first; column < first + size; ++column) {
                const std::uint8_t* codes = x.data + column * x.stride;
                double* near = rough.data() + (column - first) * width;
                vectorized<add_missing>(codes, n, x.means[column], v, near);
                if (reaches(column, near, 0.500001 * copies.data()[column], 1.0 - 1e-9))
                    likely.push_back(column);
            }
            // What was rough is not asked for again: its room takes what is exact.
            exact(x, likely, v, rough.data());
            double* z = rough.data();
            for (const Index column : likely) {
                if (reaches(column, z, 0.0, 1.0 - 1e-15)) {
                    columns.push_back(column);
                    values.insert(values.end(), z, z + width);
                }
                z += width;
            }
        }
    }
    return nb::make_tuple(owned(std::move(columns)), owned(std::move(values), width));
}

}  // namespace

void bind_genotype_search(nb::module_& m) {
    m.def("genotype_digits", &genotype_digits, nb::arg().noconvert());
    m.def("genotype_found", &genotype_found);
}

}  // namespace atomlearn
