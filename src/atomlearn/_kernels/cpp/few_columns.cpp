#include "few_columns.hpp"

#include "blas.hpp"
#include "many.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

// Columns that enter a Gram matrix together.
constexpr Index kTogether = 32;
// Entries of columns that are copied without samples that have no curvature.
constexpr Index kCopied = 1 << 22;

class DenseColumns final : public FewColumns {
  public:
    DenseColumns(const double* data, Index samples, Index count)
        : data_(data), n_(samples), count_(count) {}

    void scores(const double* v, double* z) const override {
        blas::transposed_product(n_, count_, data_, n_, v, z);
    }

    double score(Index j, const double* v) const override { return dot(column(j), v, n_); }

    void add(Index j, double factor, double* y) const override {
        add_multiple(y, factor, column(j), n_);
    }

    void gram(const std::vector<Index>& chosen, Index known, const double* curvature,
              const double* means, double* gram, Index stride) const override {
        list_samples(curvature, chosen);
        const Index size = static_cast<Index>(chosen.size());
        for (Index first = known; first < size; first += kTogether) {
            const Index count = std::min(kTogether, size - first);
            const Several v = scaled(chosen.data() + first, count, curvature,
                                     means == nullptr ? nullptr : means + first);
            sums_.assign(as_size((first + count) * v.width), 0.0);
            add_dots(at_.data(), first + count, live(), v, sums_.data());
            for (Index i = 0; i < first + count; ++i)
                for (Index c = std::max<Index>(i - first, 0); c < count; ++c)
                    gram[i * stride + first + c] = gram[(first + c) * stride + i] =
                        sums_[as_size(i * v.width + c)];
        }
    }

  private:
    const double* column(Index j) const { return data_ + j * n_; }
    Index live() const { return rows_.empty() ? n_ : static_cast<Index>(rows_.size()); }

    // The chosen columns; where many samples have no curvature, copies without these.
    void list_samples(const double* curvature, const std::vector<Index>& chosen) const {
        at_.clear();
        for (const Index j : chosen) at_.push_back(column(j));
        rows_.clear();
        for (Index i = 0; i < n_; ++i)
            if (curvature[i] > 0.0) rows_.push_back(i);
        const Index count = static_cast<Index>(rows_.size()),
                    size = static_cast<Index>(chosen.size());
        if (count == 0 || 5 * count > 4 * n_ || count * size > kCopied) return rows_.clear();
        panel_.resize(as_size(count * size));
        double* to = panel_.data();
        for (Index c = 0; c < size; ++c, to += count) {
            const double* from = at_[as_size(c)];
            for (Index i = 0; i < count; ++i) to[i] = from[rows_[as_size(i)]];
            at_[as_size(c)] = to;
        }
    }

    // Rows of D (B - 1 means'), a sample each: what is added to a column in use then counts
    // for nothing, and its own mean need not be taken off.
    Several scaled(const Index* chosen, Index count, const double* curvature,
                   const double* means) const {
        const Index width = (count + kVectorLanes - 1) / kVectorLanes * kVectorLanes, n = live();
        scaled_.assign(as_size(n * width), 0.0);
        for (Index c = 0; c < count; ++c) {
            const double* from = column(chosen[c]);
            const double mean = means == nullptr ? 0.0 : means[c];
            for (Index i = 0; i < n; ++i) {
                const Index at = rows_.empty() ? i : rows_[as_size(i)];
                scaled_[as_size(i * width + c)] = curvature[at] * (from[at] - mean);
            }
        }
        return {scaled_.data(), width, count};
    }

    const double* data_;
    Index n_, count_;
    mutable std::vector<Index> rows_;
    mutable std::vector<const double*> at_;
    mutable std::vector<double> panel_, scaled_, sums_;
};

template <class Row>
class CompressedColumns final : public FewColumns {
  public:
    CompressedColumns(const double* data, const Row* rows, const Row* starts, Index samples,
                      Index count)
        : data_(data), rows_(rows), starts_(starts), n_(samples), count_(count) {}

    void scores(const double* v, double* z) const override {
        for (Index j = 0; j < count_; ++j) z[j] = score(j, v);
    }

    double score(Index j, const double* v) const override {
        double total = 0.0;
        for (Row at = starts_[j]; at < starts_[j + 1]; ++at) total += data_[at] * v[rows_[at]];
        return total;
    }

    void add(Index j, double factor, double* y) const override {
        for (Row at = starts_[j]; at < starts_[j + 1]; ++at) y[rows_[at]] += factor * data_[at];
    }

    // Sample by sample: its entries in the chosen columns, each with those left of it.
    void gram(const std::vector<Index>& chosen, Index known, const double* curvature,
              const double* means, double* gram, Index stride) const override {
        const Index size = static_cast<Index>(chosen.size());
        list_by_samples(chosen);
        for (Index r = known; r < size; ++r) std::fill_n(gram + r * stride, r + 1, 0.0);
        for (Index i = 0; i < n_; ++i) {
            const double d = curvature[i];
            if (!(d > 0.0)) continue;
            const Index begin = firsts_[as_size(i)], end = firsts_[as_size(i + 1)];
            for (Index a = end; a-- > begin;) {
                const Index r = places_[as_size(a)];
                if (r < known) break;
                double* row = gram + r * stride;
                const double value = d * values_[as_size(a)];
                for (Index b = begin; b <= a; ++b)
                    row[places_[as_size(b)]] += value * values_[as_size(b)];
            }
        }
        double mass = 0.0;
        for (Index i = 0; i < n_; ++i) mass += curvature[i];
        for (Index r = known; r < size; ++r) {
            if (means != nullptr) add_multiple(gram + r * stride, -mass * means[r], means, r + 1);
            for (Index c = 0; c < r; ++c) gram[c * stride + r] = gram[r * stride + c];
        }
    }

  private:
    void list_by_samples(const std::vector<Index>& chosen) const {
        firsts_.assign(as_size(n_ + 1), 0);
        for (const Index j : chosen)
            for (Row at = starts_[j]; at < starts_[j + 1]; ++at) ++firsts_[as_size(rows_[at]) + 1];
        for (Index i = 0; i < n_; ++i) firsts_[as_size(i + 1)] += firsts_[as_size(i)];
        next_.assign(firsts_.begin(), firsts_.end() - 1);
        places_.resize(as_size(firsts_.back()));
        values_.resize(as_size(firsts_.back()));
        for (std::size_t place = 0; place < chosen.size(); ++place)
            for (Row at = starts_[chosen[place]]; at < starts_[chosen[place] + 1]; ++at) {
                const auto to = as_size(next_[as_size(rows_[at])]++);
                places_[to] = static_cast<Index>(place);
                values_[to] = data_[at];
            }
    }

    const double* data_;
    const Row* rows_;
    const Row* starts_;
    Index n_, count_;
    mutable std::vector<Index> firsts_, next_, places_;
    mutable std::vector<double> values_;
};

}  // namespace

std::unique_ptr<FewColumns> dense_columns(const double* data, Index samples, Index count) {
    return std::make_unique<DenseColumns>(data, samples, count);
}

template <class Row>
std::unique_ptr<FewColumns> compressed_columns(const double* data, const Row* rows,
                                               const Row* starts, Index samples, Index count) {
    return std::make_unique<CompressedColumns<Row>>(data, rows, starts, samples, count);
}

#define ATOMLEARN_INSTANTIATE(Row)                                                          \
    template std::unique_ptr<FewColumns> compressed_columns<Row>(const double*, const Row*, \
                                                                 const Row*, Index, Index);
ATOMLEARN_INSTANTIATE(std::int32_t)
ATOMLEARN_INSTANTIATE(std::int64_t)

}  // namespace atomlearn
