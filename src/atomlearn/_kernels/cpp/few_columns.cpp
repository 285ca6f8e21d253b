#include "few_columns.hpp"

#include <cmath>

#include "blas.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

// Entries of scaled columns that are held at a time.
constexpr Index kPanel = 1 << 18;
// Below so many entries the BLAS and its threads cost more than they save.
constexpr Index kSmall = 1 << 10;

ATOMLEARN_CLONES void scaled_less_mean(double* to, const double* from, double mean,
                                       const double* root, Index size) {
#pragma omp simd
    for (Index i = 0; i < size; ++i) to[i] = (from[i] - mean) * root[i];
}

class DenseColumns final : public FewColumns {
  public:
    DenseColumns(const double* data, Index samples, Index count)
        : data_(data), n_(samples), count_(count) {}

    void scores(const double* v, double* z) const override {
        if (blas::ready() && n_ * count_ > kSmall) {
            blas::transposed_product(n_, count_, data_, n_, v, z);
        } else {
            for (Index j = 0; j < count_; ++j) z[j] = score(j, v);
        }
    }

    double score(Index j, const double* v) const override { return dot(column(j), v, n_); }

    void add(Index j, double factor, double* y) const override {
        add_multiple(y, factor, column(j), n_);
    }

    void gram(const std::vector<Index>& chosen, Index known, const double* curvature,
              const double* means, double* gram, Index stride) const override {
        // Samples without curvature are left out, a panel of samples at a time.
        rows_.clear();
        root_.clear();
        for (Index i = 0; i < n_; ++i)
            if (curvature[i] > 0.0) {
                rows_.push_back(i);
                root_.push_back(std::sqrt(curvature[i]));
            }
        const Index live = static_cast<Index>(rows_.size()),
                    size = static_cast<Index>(chosen.size());
        const Index most = std::max<Index>(64, kPanel / std::max<Index>(size, 1));
        const Index panels = std::max<Index>(1, (live + most - 1) / most);
        const Index height = (live + panels - 1) / panels;
        panel_.resize(as_size(height * size));
        for (Index first = 0; first < std::max<Index>(live, 1);
             first += std::max<Index>(height, 1)) {
            const Index count = std::min(height, live - first);
            for (Index c = 0; c < size; ++c)
                scale(chosen[as_size(c)], means == nullptr ? 0.0 : means[c], first, count,
                      panel_.data() + c * count);
            multiply(count, size, known, first == 0 ? 0.0 : 1.0, gram, stride);
        }
    }

  private:
    const double* column(Index j) const { return data_ + j * n_; }

    void scale(Index j, double mean, Index first, Index count, double* to) const {
        const double* from = column(j);
        const double* root = root_.data() + first;
        if (static_cast<Index>(rows_.size()) == n_)
            return scaled_less_mean(to, from + first, mean, root, count);
        const Index* rows = rows_.data() + first;
        for (Index i = 0; i < count; ++i) to[i] = (from[rows[i]] - mean) * root[i];
    }

    // gram = beta gram + P'P of the panel; columns of the BLAS's upper triangle are rows here.
    void multiply(Index count, Index size, Index known, double beta, double* gram,
                  Index stride) const {
        const double* fresh = panel_.data() + known * count;
        const Index more = size - known;
        if (blas::ready() && more * count > kSmall) {
            blas::product(known, more, count, panel_.data(), count, fresh, count, beta,
                          gram + known * stride, stride);
            // The lower triangle by columns: mirrored below.
            corner_.resize(as_size(more * more));
            blas::add_gram(more, count, 1.0, fresh, count, 0.0, corner_.data(), more);
            for (Index r = 0; r < more; ++r) {
                double* row = gram + (known + r) * stride + known;
                for (Index c = 0; c <= r; ++c)
                    row[c] = (beta == 0.0 ? 0.0 : row[c]) + corner_[as_size(c * more + r)];
            }
            return;
        }
        for (Index r = known; r < size; ++r)
            for (Index c = 0; c <= r; ++c) {
                double& entry = gram[r * stride + c];
                const double sum = dot(panel_.data() + r * count, panel_.data() + c * count, count);
                entry = (beta == 0.0 ? 0.0 : entry) + sum;
            }
    }

    const double* data_;
    Index n_, count_;
    mutable std::vector<Index> rows_;
    mutable std::vector<double> root_, panel_, corner_;
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
        if (means == nullptr) return;
        double mass = 0.0;
        for (Index i = 0; i < n_; ++i) mass += curvature[i];
        for (Index r = known; r < size; ++r)
            add_multiple(gram + r * stride, -mass * means[r], means, r + 1);
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
