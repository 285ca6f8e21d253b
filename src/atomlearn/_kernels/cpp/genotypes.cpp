// Products with genotypes of two bits each: unpacked in registers, summed in float64.
//
// One thread a call: files are passed over in tiles, and tiles are shared out among threads.
#include <bit>
#include <vector>

#include "bindings.hpp"
#include "stored.hpp"

namespace atomlearn {
namespace {

constexpr Index kWordBytes = sizeof(std::uint64_t);
constexpr Index kWordSamples = kQuad * kWordBytes;

typedef double Lanes __attribute__((vector_size(64)));
typedef std::int32_t Ints __attribute__((vector_size(32)));
constexpr Ints kShifts = {0, 2, 4, 6, 8, 10, 12, 14};

// 32 genotypes as copies (0, 1, 2; missing: 0), two bits each, and a bit for each missing one.
struct Word {
    std::uint64_t copies;
    std::uint64_t missing;
};

ATOMLEARN_INLINE Word unpack(std::uint64_t code) {
    const std::uint64_t flipped = ~code;
    const std::uint64_t low = flipped & kLow, high = (flipped >> 1) & kLow;
    return {((low & high) << 1) | (low & ~high), high & ~low};
}

// The last bytes of a column end where the data may end: never read beyond.
ATOMLEARN_INLINE std::uint64_t load_word(const std::uint8_t* x, Index bytes) {
    std::uint64_t word = ~0ull;  // no copies
    std::memcpy(&word, x, static_cast<std::size_t>(bytes));
    return word;
}

ATOMLEARN_INLINE Lanes eight_copies(std::uint64_t copies, int quarter) {
    const std::int32_t part = static_cast<std::int32_t>((copies >> (16 * quarter)) & 0xffff);
    Ints codes = {part, part, part, part, part, part, part, part};
    codes = (codes >> kShifts) & 3;
    return __builtin_convertvector(codes, Lanes);
}

ATOMLEARN_INLINE double sum_at(std::uint64_t missing, const double* v) {
    double sum = 0.0;
    for (; missing; missing &= missing - 1) sum += v[std::countr_zero(missing) / 2];
    return sum;
}

ATOMLEARN_INLINE double total(const Lanes& x) {
    return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]));
}

// Four columns at once share the loads of v, and their sums hide the latency of addition.
template <bool Squared>
ATOMLEARN_INLINE void dot_word(const std::uint8_t* const* x, Index start, Index bytes,
                               const double* v, Lanes* sums, double* missing) {
    std::uint64_t copies[kColumns];
    for (Index c = 0; c < kColumns; ++c) {
        const Word word = unpack(load_word(x[c] + start, bytes));
        copies[c] = word.copies;
        if (word.missing) [[unlikely]]
            missing[c] += sum_at(word.missing, v);
    }
    for (int quarter = 0; quarter < 4; ++quarter) {
        Lanes shared;
        std::memcpy(&shared, v + 8 * quarter, sizeof shared);
        for (Index c = 0; c < kColumns; ++c) {
            const Lanes values = eight_copies(copies[c], quarter);
            sums[c] += shared * (Squared ? values * values : values);
        }
    }
}

template <bool Squared>
ATOMLEARN_INLINE void dot_columns(const std::uint8_t* const* x, Index n_bytes, const double* v,
                                  double* sums, double* missing) {
    Lanes s[kColumns] = {};
    Index start = 0;
    for (; start + kWordBytes <= n_bytes; start += kWordBytes)
        dot_word<Squared>(x, start, kWordBytes, v + 4 * start, s, missing);
    if (start < n_bytes) dot_word<Squared>(x, start, n_bytes - start, v + 4 * start, s, missing);
    for (Index c = 0; c < kColumns; ++c) sums[c] = total(s[c]);
}

#ifdef ATOMLEARN_X86
#define ATOMLEARN_WIDE \
    ATOMLEARN_FOR("avx512f,avx512dq,avx512bw,avx512vl,fma,prefer-vector-width=512")
// With AVX-512 a register holds the values of the four codes, twice, and one instruction looks up
// eight genotypes: the shuffle takes the low three bits, of which the third does not matter.
typedef std::uint64_t Codes __attribute__((vector_size(64)));
constexpr Codes kCodeShifts = {0, 2, 4, 6, 8, 10, 12, 14};

ATOMLEARN_INLINE Lanes table(double two, double missing, double one) {
    return Lanes{two, missing, one, 0.0, two, missing, one, 0.0};
}

ATOMLEARN_INLINE Lanes looked_up(const Lanes& values, std::uint64_t code, int quarter) {
    const Codes codes = code - Codes{};
    return __builtin_shuffle(values, codes >> (kCodeShifts + 16 * quarter));
}

ATOMLEARN_INLINE void look_up_dots(const std::uint8_t* const* x, Index start, Index bytes,
                                   const double* v, const Lanes* values, Lanes* sums) {
    std::uint64_t codes[kColumns];
    for (Index c = 0; c < kColumns; ++c) codes[c] = load_word(x[c] + start, bytes);
    for (int quarter = 0; quarter < 4; ++quarter) {
        Lanes shared;
        std::memcpy(&shared, v + 8 * quarter, sizeof shared);
        for (Index c = 0; c < kColumns; ++c)
            sums[c] += shared * looked_up(values[c], codes[c], quarter);
    }
}

// values : the tables of four columns; sums : their products with v.
ATOMLEARN_WIDE void dots_by_lookup(const std::uint8_t* const* x, Index n_bytes, const double* v,
                                   const double (*values)[3], double* sums) {
    Lanes tables[kColumns], s[kColumns] = {};
    for (Index c = 0; c < kColumns; ++c)
        tables[c] = table(values[c][0], values[c][1], values[c][2]);
    Index start = 0;
    for (; start + kWordBytes <= n_bytes; start += kWordBytes)
        look_up_dots(x, start, kWordBytes, v + 4 * start, tables, s);
    if (start < n_bytes) look_up_dots(x, start, n_bytes - start, v + 4 * start, tables, s);
    for (Index c = 0; c < kColumns; ++c) sums[c] = total(s[c]);
}

ATOMLEARN_INLINE void look_up_sums(const std::uint8_t* const* x, Index start, Index bytes,
                                   const Lanes* values, double* out) {
    std::uint64_t codes[kColumns];
    for (Index c = 0; c < kColumns; ++c) codes[c] = load_word(x[c] + start, bytes);
    for (int quarter = 0; quarter < 4; ++quarter) {
        Lanes sum;
        std::memcpy(&sum, out + 8 * quarter, sizeof sum);
        for (Index c = 0; c < kColumns; ++c) sum += looked_up(values[c], codes[c], quarter);
        std::memcpy(out + 8 * quarter, &sum, sizeof sum);
    }
}

ATOMLEARN_WIDE void sums_by_lookup(const std::uint8_t* const* x, Index n_bytes,
                                   const double (*values)[3], double* out) {
    Lanes tables[kColumns];
    for (Index c = 0; c < kColumns; ++c)
        tables[c] = table(values[c][0], values[c][1], values[c][2]);
    Index start = 0;
    for (; start + kWordBytes <= n_bytes; start += kWordBytes)
        look_up_sums(x, start, kWordBytes, tables, out + 4 * start);
    if (start < n_bytes) look_up_sums(x, start, n_bytes - start, tables, out + 4 * start);
}
#endif

// A short last group repeats its last column; its results are dropped.
ATOMLEARN_INLINE void columns_at(const Genotypes& x, Index first, const std::uint8_t** out) {
    for (Index c = 0; c < kColumns; ++c)
        out[c] = x.data + std::min(first + c, x.count - 1) * x.stride;
}

template <bool Squared>
void dots(const Genotypes& x, const double* v, double* out) {
    for (Index first = 0; first < x.count; first += kColumns) {
        const std::uint8_t* columns[kColumns];
        columns_at(x, first, columns);
        double sums[kColumns], missing[kColumns] = {}, fills[kColumns];
        for (Index c = 0; c < kColumns; ++c) {
            const double mean = x.means[std::min(first + c, x.count - 1)];
            fills[c] = Squared ? mean * mean : mean;
        }
#ifdef ATOMLEARN_X86
        if (simd == Simd::avx512) {
            double values[kColumns][3];
            for (Index c = 0; c < kColumns; ++c)
                values[c][0] = Squared ? 4.0 : 2.0, values[c][1] = fills[c], values[c][2] = 1.0;
            dots_by_lookup(columns, x.stride, v, values, sums);
        } else
#endif
            vectorized<dot_columns<Squared>>(columns, x.stride, v, sums, missing);
        for (Index c = 0; c < kColumns && first + c < x.count; ++c)
            out[first + c] = sums[c] + fills[c] * missing[c];
    }
}

ATOMLEARN_INLINE void add_word(const std::uint8_t* const* x, Index start, Index bytes,
                               const double* w, const double* filled, double* out) {
    std::uint64_t copies[kColumns];
    for (Index c = 0; c < kColumns; ++c) {
        const Word word = unpack(load_word(x[c] + start, bytes));
        copies[c] = word.copies;
        for (std::uint64_t m = word.missing; m; m &= m - 1) [[unlikely]]
            out[std::countr_zero(m) / 2] += filled[c];
    }
    for (int quarter = 0; quarter < 4; ++quarter) {
        Lanes sum;
        std::memcpy(&sum, out + 8 * quarter, sizeof sum);
        for (Index c = 0; c < kColumns; ++c) sum += w[c] * eight_copies(copies[c], quarter);
        std::memcpy(out + 8 * quarter, &sum, sizeof sum);
    }
}

ATOMLEARN_INLINE void add_columns(const std::uint8_t* const* x, Index n_bytes, const double* w,
                                  const double* filled, double* out) {
    Index start = 0;
    for (; start + kWordBytes <= n_bytes; start += kWordBytes)
        add_word(x, start, kWordBytes, w, filled, out + 4 * start);
    if (start < n_bytes) add_word(x, start, n_bytes - start, w, filled, out + 4 * start);
}

// Bits beyond the last sample are anything: off.
ATOMLEARN_INLINE std::uint64_t tail_mask(Index samples) {
    return samples >= kWordSamples ? ~0ull : (1ull << (2 * samples)) - 1;
}

ATOMLEARN_INLINE void count(const Genotypes& x, Index* out) {
    const Index n_bytes = x.stride;
    for (Index j = 0; j < x.count; ++j) {
        const std::uint8_t* column = x.data + j * x.stride;
        Index copies = 0, missing = 0;
        for (Index start = 0; start < n_bytes; start += kWordBytes) {
            const Word word =
                unpack(load_word(column + start, std::min(kWordBytes, n_bytes - start)));
            const std::uint64_t mask = tail_mask(x.n_samples - 4 * start);
            const std::uint64_t kept = word.copies & mask;
            copies += std::popcount(kept & kLow) + 2 * std::popcount(kept & ~kLow);
            missing += std::popcount(word.missing & mask);
        }
        out[2 * j] = copies;
        out[2 * j + 1] = missing;
    }
}

Genotypes genotypes(const Bytes& data, Index n_samples, const Doubles& means) {
    return {data.data(), (n_samples + 3) / 4, n_samples, size_of(means), means.data()};
}

constexpr Index kTabled = kQuad * kMostLevels;

template <class U>
void unpack_column(const std::uint8_t* column, Index n, U mean, U* target) {
    const U values[4] = {U(2), mean, U(1), U(0)};
    Index i = 0;
    if (n >= 4 * kTabled) {
        // Four genotypes a byte: what each byte stands for is written once a column.
        U table[kTabled];
        for (Index t = 0; t < kTabled; ++t) table[t] = values[(t / 4 >> (2 * (t % 4))) & 3];
        for (; i + 4 <= n; i += 4) std::copy_n(table + 4 * Index{column[i / 4]}, 4, target + i);
    }
    for (; i < n; ++i) target[i] = values[(column[i / 4] >> (2 * (i % 4))) & 3];
}

// out[j] = sum_i v_i x_ij (x_ij^2); v has room for 32 samples beyond, zeros.
void genotype_dots(const Bytes& data, Index n_samples, const Doubles& means, bool squared,
                   const Doubles& v, const OutDoubles& out) {
    const Genotypes x = genotypes(data, n_samples, means);
    squared ? dots<true>(x, v.data(), out.data()) : dots<false>(x, v.data(), out.data());
}

// out[i] += sum_j x_ij w_j; out has room for 32 samples beyond, which are garbage afterwards.
void genotype_sums(const Bytes& data, Index n_samples, const Doubles& means, const Doubles& w,
                   const OutDoubles& out) {
    const Genotypes x = genotypes(data, n_samples, means);
    for (Index first = 0; first < x.count; first += kColumns) {
        const std::uint8_t* columns[kColumns];
        columns_at(x, first, columns);
        double weights[kColumns] = {}, filled[kColumns] = {};
        bool any = false;
        for (Index c = 0; c < kColumns && first + c < x.count; ++c) {
            weights[c] = w.data()[first + c];
            filled[c] = weights[c] * x.means[first + c];
            any = any || weights[c] != 0.0;
        }
        if (!any) continue;
#ifdef ATOMLEARN_X86
        if (simd == Simd::avx512) {
            double values[kColumns][3];
            for (Index c = 0; c < kColumns; ++c)
                values[c][0] = 2.0 * weights[c], values[c][1] = filled[c],
                values[c][2] = weights[c];
            sums_by_lookup(columns, x.stride, values, out.data());
            continue;
        }
#endif
        vectorized<add_columns>(columns, x.stride, weights, filled, out.data());
    }
}

// out[2 j] = copies counted, out[2 j + 1] = entries missing of column j.
void genotype_counts(const Bytes& data, Index n_samples, const Doubles& means,
                     const OutPositions& out) {
    vectorized<count>(genotypes(data, n_samples, means), out.data());
}

constexpr Index kWordPair = kWordSamples * 2;
constexpr Index kTile = kRun / 2;  // words of 64 samples that are multiplied at a time
// Samples and columns whose missing entries are looked up at a time.
constexpr Index kRows = 16 * kRun, kBatch = 64;

// The entries x - 1 of a tile of a column, a bit a sample: those that are 1 or -1, and those that
// are -1. Missing ones are 0. Even bits have the first 32 samples of a word, odd bits the others.
struct Planes {
    std::uint64_t used[kTile], less[kTile];
};

ATOMLEARN_INLINE void planes_of(const std::uint8_t* column, Index bytes, const std::uint64_t* mask,
                                Index words, Planes& out) {
    std::uint64_t codes[2 * kTile] = {};
    std::memcpy(codes, column, as_size(std::min(bytes, 2 * kWordBytes * words)));
    for (Index w = 0; w < words; ++w) {
        const std::uint64_t first = codes[2 * w], second = codes[2 * w + 1];
        const std::uint64_t low = (first & kLow) | ((second & kLow) << 1);
        const std::uint64_t high = ((first >> 1) & kLow) | (second & ~kLow);
        out.used[w] = ~(low ^ high) & mask[w];
        out.less[w] = low & high & mask[w];
    }
}

// out[i] += the product of tiles of two columns, y and x[i], each less 1.
ATOMLEARN_INLINE void multiply(const Planes* y, const Planes* x, Index count, Index words,
                               double* out) {
    for (Index i = 0; i < count; ++i, ++x) {
        Index product = 0;
        for (Index w = 0; w < words; ++w) {
            const std::uint64_t both = y->used[w] & x->used[w];
            product += std::popcount(both) - 2 * std::popcount(both & (y->less[w] ^ x->less[w]));
        }
        out[i] += static_cast<double>(product);
    }
}

#ifdef ATOMLEARN_X86
template <class... Args>
ATOMLEARN_FOR("arch=x86-64-v4,avx512vpopcntdq,prefer-vector-width=512")
void fast_multiply(Args... args) {
    multiply(args...);
}
#endif

template <class... Args>
void multiplied(Args... args) {
#ifdef ATOMLEARN_X86
    static const bool is_fast = __builtin_cpu_supports("avx512vpopcntdq");
    if (is_fast && simd == Simd::avx512) return fast_multiply(args...);
#endif
    vectorized<multiply>(args...);
}

// A tile of columns less 1, sample after sample, 0 where missing or where v = 0; 1 where missing,
// else 0; and the samples that each column misses.
struct Entries {
    std::vector<std::int8_t> values, missing;
    std::vector<Index> gone[kBatch];
};

// mask: for each sample 255 where it counts, else 0.
void entries_of(const Genotypes& x, Index first, Index row, const std::vector<std::uint8_t>& mask,
                Entries& out) {
    constexpr std::int8_t kLess[4] = {1, 0, 0, -1};
    out.values.assign(as_size(kRows * kBatch), 0);
    out.missing.assign(as_size(kRows * kBatch), 0);
    for (auto& rows : out.gone) rows.clear();
    const Index size = static_cast<Index>(mask.size());
    const Index columns = std::min(kBatch, x.count - first);
    // Few samples at a time, whose entries stay in the cache.
    for (Index block = 0; block < size; block += kBatch)
        for (Index c = 0; c < columns; ++c) {
            const std::uint8_t* codes = x.data + (first + c) * x.stride + row / kQuad;
            const Index end = std::min(block + kBatch, size);
            for (Index i = block; i < end; ++i) {
                const int code = codes[i / kQuad] >> (2 * (i % kQuad)) & 3;
                out.values[as_size(i * kBatch + c)] =
                    static_cast<std::int8_t>(kLess[code] & mask[as_size(i)]);
                if (code != 1 || mask[as_size(i)] == 0) continue;
                out.missing[as_size(i * kBatch + c)] = 1;
                out.gone[c].push_back(i);
            }
        }
}

ATOMLEARN_INLINE void add_rows(const std::vector<std::int8_t>& values,
                               const std::vector<Index>& rows, std::int16_t* sums) {
    for (const Index row : rows)
        for (Index c = 0; c < kBatch; ++c)
            sums[c] = static_cast<std::int16_t>(sums[c] + values[as_size(row * kBatch + c)]);
}

bool misses(const Genotypes& x) {
    std::uint64_t gone = 0;
    for (Index c = 0; c < x.count && gone == 0; ++c)
        for (Index start = 0; start < x.stride; start += kWordBytes)
            gone |= unpack(load_word(x.data + c * x.stride + start,
                                     std::min(kWordBytes, x.stride - start)))
                        .missing;
    return gone != 0;
}

// Adds the products with missing entries, which are few: they are looked up.
void add_missing(const Genotypes& y, const Genotypes& x, const double* v, double* out) {
    if (!misses(y) && !misses(x)) return;
    std::vector<Entries> of_y(as_size((y.count + kBatch - 1) / kBatch));
    Entries of_x;
    for (Index row = 0; row < x.n_samples; row += kRows) {
        std::vector<std::uint8_t> mask(as_size(std::min(kRows, x.n_samples - row)));
        for (std::size_t i = 0; i < mask.size(); ++i)
            mask[i] = v[as_size(row) + i] != 0.0 ? 255 : 0;
        for (Index b = 0; b * kBatch < y.count; ++b)
            entries_of(y, b * kBatch, row, mask, of_y[as_size(b)]);
        for (Index first = 0; first < x.count; first += kBatch) {
            entries_of(x, first, row, mask, of_x);
            const Index count = std::min(kBatch, x.count - first);
            for (Index j = 0; j < y.count; ++j) {
                const auto& rows = of_y[as_size(j / kBatch)].gone[j % kBatch];
                if (rows.empty()) continue;
                std::int16_t known[kBatch] = {}, both[kBatch] = {};
                vectorized<add_rows>(of_x.values, rows, known);
                vectorized<add_rows>(of_x.missing, rows, both);
                for (Index i = 0; i < count; ++i)
                    out[j * x.count + first + i] +=
                        (y.means[j] - 1.0) * (known[i] + (x.means[first + i] - 1.0) * both[i]);
            }
            for (Index i = 0; i < count; ++i) {
                const auto& rows = of_x.gone[i];
                for (Index b = 0; b * kBatch < y.count && !rows.empty(); ++b) {
                    std::int16_t known[kBatch] = {};
                    vectorized<add_rows>(of_y[as_size(b)].values, rows, known);
                    for (Index j = b * kBatch; j < std::min((b + 1) * kBatch, y.count); ++j)
                        out[j * x.count + first + i] +=
                            (x.means[first + i] - 1.0) * known[j - b * kBatch];
                }
            }
        }
    }
}

// out[j][i] += sum over samples of v != 0 of (y_j - 1)(x_i - 1), out zeros before: bits are
// counted.
void genotype_products(const Bytes& data, const Doubles& means, const Bytes& others,
                       const Doubles& other_means, const Doubles& v, const OutDoubleMatrix& out) {
    const Index n_samples = size_of(v);
    const Genotypes y = genotypes(data, n_samples, means);
    const Genotypes x = genotypes(others, n_samples, other_means);
    std::vector<Planes> planes(as_size(std::min(x.count, kRun)));
    for (Index start = 0; start < n_samples; start += kWordPair * kTile) {
        std::uint64_t mask[kTile] = {};
        const Index size = std::min(kWordPair * kTile, n_samples - start);
        for (Index i = 0; i < size; ++i)
            if (v.data()[start + i] != 0.0)
                mask[i / kWordPair] |= 1ull << (2 * (i % kWordSamples) + i / kWordSamples % 2);
        // All registers are full: the mask has zeros beyond the last sample.
        const Index words = (size + kRun * 2 - 1) / (kRun * 2) * kVectorLanes;
        const Index place = start / kQuad, bytes = x.stride - place;
        for (Index first = 0; first < x.count; first += kRun) {
            const Index count = std::min(kRun, x.count - first);
            for (Index i = 0; i < count; ++i)
                planes_of(x.data + (first + i) * x.stride + place, bytes, mask, words,
                          planes[as_size(i)]);
            for (Index j = 0; j < y.count; ++j) {
                Planes one;
                planes_of(y.data + j * y.stride + place, bytes, mask, words, one);
                multiplied(&one, static_cast<const Planes*>(planes.data()), count, words,
                           out.data() + j * x.count + first);
            }
        }
    }
    add_missing(y, x, v.data(), out.data());
}

// The columns, in Fortran order.
void genotype_gather(const Bytes& data, Index n_samples, const Doubles& means,
                     const OutMatrix& out) {
    const Genotypes x = genotypes(data, n_samples, means);
    by_float(out, [&]<class U>(const U*) {
        for (Index m = 0; m < x.count; ++m)
            unpack_column(x.data + m * x.stride, x.n_samples, static_cast<U>(x.means[m]),
                          static_cast<U*>(out.data()) + m * x.n_samples);
    });
}

}  // namespace

void bind_genotypes(nb::module_& m) {
    define(m, "genotype_dots", &genotype_dots);
    define(m, "genotype_sums", &genotype_sums);
    define(m, "genotype_counts", &genotype_counts);
    define(m, "genotype_products", &genotype_products);
    define(m, "genotype_gather", &genotype_gather);
}

}  // namespace atomlearn
