#include "few_columns.hpp"

#include <cmath>

#include "blas.hpp"
#include "many.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

// Columns that join a Gram matrix together.
constexpr Index kTogether = 32;
// Rows of a panel that a Gram matrix is summed over: enough that its entries are seldom read.
constexpr Index kPanel = 512;

class DenseColumns final : public FewColumns {
  public:
    DenseColumns(const double* data, Index samples, Index count)
        : data_(data), n_(samples), count_(count) {}

    double entries() const override { return static_cast<double>(n_ * count_); }
    double gram_work(double size) const override {
        return static_cast<double>(n_) * size * size / kBlasGain;
    }

    void scores(const double* const* v, Index count, double* z, Index stride) const override {
        if (count == 1) return blas::transposed_product(n_, count_, data_, n_, v[0], z);
        rows_.assign(as_size(n_ * kVectorLanes), 0.0);
        for (Index k = 0; k < count; ++k)
            for (Index i = 0; i < n_; ++i) rows_[as_size(i * kVectorLanes + k)] = v[k][i];
        sums_.assign(as_size(count_ * kVectorLanes), 0.0);
        at_.clear();
        for (Index j = 0; j < count_; ++j) at_.push_back(column(j));
        add_dots(at_.data(), count_, n_, {rows_.data(), kVectorLanes, count}, sums_.data());
        for (Index j = 0; j < count_; ++j)
            for (Index k = 0; k < count; ++k)
                z[k * stride + j] = sums_[as_size(j * kVectorLanes + k)];
    }

    double score(Index j, const double* v) const override { return dot(column(j), v, n_); }
    void copy(Index j, double* to) const override { std::copy_n(column(j), n_, to); }
    bool projects() const override { return true; }

    void add(const std::vector<Index>& chosen, const double* factors, Index count,
             double* const* y) const override {
        const Index size = static_cast<Index>(chosen.size());
        const int parts = threads_for(n_ * size * count);
        in_parallel(parts, [&](int part) {
            const Index last = n_ * (part + 1) / parts;
            for (Index row = n_ * part / parts; row < last; row += 4 * kRun) {
                const Index rows = std::min(last - row, 4 * kRun);
                for (Index i = 0; i < size; ++i)
                    for (Index k = 0; k < count; ++k)
                        if (const double factor = factors[k * size + i]; factor != 0.0)
                            add_multiple(y[k] + row, factor, column(chosen[as_size(i)]) + row,
                                         rows);
            }
        });
    }

    void gram(const std::vector<Index>& chosen, Index known, const WeightedBasis& weighted,
              double* gram, Index stride) const override {
        const Index size = static_cast<Index>(chosen.size());
        live_.clear();
        for (Index i = 0; i < n_; ++i)
            if (weighted.curvature[i] > 0.0) live_.push_back(i);
        if (known == 0)
            add_panels(chosen, weighted, gram, stride);
        else
            add_rows(chosen, known, weighted, gram, stride);
        for (Index r = known; r < size; ++r)
            for (Index c = 0; c < r; ++c) gram[r * stride + c] = gram[c * stride + r];
    }

  private:
    const double* column(Index j) const { return data_ + j * n_; }

    // to = factors (a_j - Q means) at some samples of positive curvature.
    void scale(Index j, const double* means, const WeightedBasis& weighted, const Index* at,
               Index rows, const double* factors, double* to, Index step) const {
        const double* from = column(j);
        for (Index i = 0; i < rows; ++i) {
            double value = from[at[i]];
            for (Index q = 0; q < weighted.free; ++q)
                value -= means[q] * weighted.basis[q * n_ + at[i]];
            to[i * step] = factors[i] * value;
        }
    }

    // The whole of it: of copies times the roots of D, some rows at a time.
    void add_panels(const std::vector<Index>& chosen, const WeightedBasis& weighted, double* gram,
                    Index stride) const {
        const Index size = static_cast<Index>(chosen.size());
        const Index live = static_cast<Index>(live_.size());
        const Index height = std::min(kPanel, std::max<Index>(live, 1));
        scaled_.resize(as_size(height * size));
        factors_.resize(as_size(height));
        for (Index first = 0; first < std::max<Index>(live, 1); first += height) {
            const Index rows = std::min(height, live - first);
            const Index* at = live_.data() + first;
            for (Index i = 0; i < rows; ++i)
                factors_[as_size(i)] = std::sqrt(weighted.curvature[at[i]]);
            for (Index c = 0; c < size; ++c)
                scale(chosen[as_size(c)], weighted.means + c * weighted.free, weighted, at, rows,
                      factors_.data(), scaled_.data() + c * height, 1);
            blas::add_gram(size, rows, 1.0, scaled_.data(), height, first > 0, gram, stride);
        }
    }

    // Some columns join the others, which are not copied: what is projected off the ones that join
    // counts for nothing in the rest.
    void add_rows(const std::vector<Index>& chosen, Index known, const WeightedBasis& weighted,
                  double* gram, Index stride) const {
        const Index size = static_cast<Index>(chosen.size());
        at_.clear();
        for (const Index j : chosen) at_.push_back(column(j));
        factors_.resize(live_.size());
        for (std::size_t i = 0; i < live_.size(); ++i) factors_[i] = weighted.curvature[live_[i]];
        for (Index first = known; first < size; first += kTogether) {
            const Index count = std::min(kTogether, size - first);
            const Index width = (count + kVectorLanes - 1) / kVectorLanes * kVectorLanes;
            scaled_.assign(as_size(n_ * width), 0.0);
            rows_.resize(live_.size());
            for (Index c = 0; c < count; ++c) {
                scale(chosen[as_size(first + c)], weighted.means + (first + c) * weighted.free,
                      weighted, live_.data(), static_cast<Index>(live_.size()), factors_.data(),
                      rows_.data(), 1);
                for (std::size_t i = 0; i < live_.size(); ++i)
                    scaled_[as_size(live_[i] * width + c)] = rows_[i];
            }
            sums_.assign(as_size((first + count) * width), 0.0);
            add_dots(at_.data(), first + count, n_, {scaled_.data(), width, count}, sums_.data());
            for (Index i = 0; i < first + count; ++i)
                for (Index c = std::max<Index>(i - first, 0); c < count; ++c)
                    gram[i * stride + first + c] = sums_[as_size(i * width + c)];
        }
    }

    const double* data_;
    Index n_, count_;
    mutable std::vector<Index> live_;
    mutable std::vector<const double*> at_;
    mutable std::vector<double> scaled_, factors_, rows_, sums_;
};

template <class Row>
class CompressedColumns final : public FewColumns {
  public:
    CompressedColumns(const double* data, const Row* rows, const Row* starts, Index samples,
                      Index count)
        : data_(data), rows_(rows), starts_(starts), n_(samples), count_(count) {}

    double entries() const override { return static_cast<double>(starts_[count_]); }
    double gram_work(double size) const override {
        const double used = entries() * size / static_cast<double>(count_);
        return size * size + used * (1.0 + used / static_cast<double>(n_));
    }

    void scores(const double* const* v, Index count, double* z, Index stride) const override {
        for (Index k = 0; k < count; ++k)
            for (Index j = 0; j < count_; ++j) z[k * stride + j] = score(j, v[k]);
    }

    double score(Index j, const double* v) const override {
        // Sums that do not wait for one another.
        double sums[4] = {0.0, 0.0, 0.0, 0.0};
        Row at = starts_[j];
        const Row end = starts_[j + 1];
        for (; at + 4 <= end; at += 4)
            for (Row k = 0; k < 4; ++k) sums[k] += data_[at + k] * v[rows_[at + k]];
        for (; at < end; ++at) sums[0] += data_[at] * v[rows_[at]];
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    void copy(Index j, double* to) const override {
        std::fill_n(to, n_, 0.0);
        for (Row at = starts_[j]; at < starts_[j + 1]; ++at) to[rows_[at]] = data_[at];
    }

    void add(const std::vector<Index>& chosen, const double* factors, Index count,
             double* const* y) const override {
        const Index size = static_cast<Index>(chosen.size());
        for (Index k = 0; k < count; ++k)
            for (Index i = 0; i < size; ++i) {
                const double factor = factors[k * size + i];
                const Index j = chosen[as_size(i)];
                if (factor == 0.0) continue;
                for (Row at = starts_[j]; at < starts_[j + 1]; ++at)
                    y[k][rows_[at]] += factor * data_[at];
            }
    }

    bool is_sparse() const override { return true; }
    double square(Index j, const double* d) const override {
        double total = 0.0;
        for (Row at = starts_[j]; at < starts_[j + 1]; ++at)
            total += d[rows_[at]] * data_[at] * data_[at];
        return total;
    }
    void shift(Index j, double factor, const double* d, double* y) const override {
        for (Row at = starts_[j]; at < starts_[j + 1]; ++at)
            y[rows_[at]] += factor * d[rows_[at]] * data_[at];
    }

    // Sample by sample: its entries in the chosen columns, each with those left of it.
    void gram(const std::vector<Index>& chosen, Index known, const WeightedBasis& weighted,
              double* gram, Index stride) const override {
        const Index size = static_cast<Index>(chosen.size());
        list_by_samples(chosen);
        for (Index r = known; r < size; ++r) std::fill_n(gram + r * stride, r + 1, 0.0);
        for (Index i = 0; i < n_; ++i) {
            const double d = weighted.curvature[i];
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
        for (Index r = known; r < size; ++r)
            for (Index c = 0; c < r; ++c) gram[c * stride + r] = gram[r * stride + c];
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

// Each feature is read once for all tasks.
class TaskColumns final : public FewColumns {
  public:
    explicit TaskColumns(const TaskPairs& pairs) : p_(pairs) {}

    double entries() const override { return static_cast<double>(p_.rows * p_.count); }
    double gram_work(double size) const override {
        return static_cast<double>(p_.rows) * size * size / kBlasGain;
    }

    void scores(const double* const* v, Index count, double* z, Index stride) const override {
        const Index q = p_.n_tasks, width = q * count;
        apart_.resize(as_size(p_.rows * width));
        for (Index k = 0; k < count; ++k)
            for (Index i = 0; i < p_.rows; ++i)
                for (Index t = 0; t < q; ++t)
                    apart_[as_size((k * q + t) * p_.rows + i)] = v[k][i * q + t];
        sums_.resize(as_size(width * p_.n_features));
        blas::product(width, p_.n_features, p_.rows, apart_.data(), p_.rows, p_.features, p_.rows,
                      0.0, sums_.data(), width);
        for (Index k = 0; k < count; ++k)
            for (Index j = 0; j < p_.count; ++j)
                z[k * stride + j] = sums_[as_size(p_.places[j] * width + k * q + p_.tasks[j])];
    }

    double score(Index j, const double* v) const override {
        const double* x = feature(j);
        double total = 0.0;
        for (Index i = 0; i < p_.rows; ++i) total += x[i] * v[i * p_.n_tasks + p_.tasks[j]];
        return total;
    }

    Index tasks() const override { return p_.n_tasks; }
    Index entry(Index j) const override { return p_.places[j] * p_.n_tasks + p_.tasks[j]; }
    void spread(Index j, const double* shares, double* to) const override {
        const double *x = feature(j), *share = shares + p_.tasks[j] * p_.rows;
        for (Index i = 0; i < p_.rows; ++i) to[i] = x[i] * share[i];
    }

    void copy(Index j, double* to) const override {
        std::fill_n(to, p_.rows * p_.n_tasks, 0.0);
        const double* x = feature(j);
        for (Index i = 0; i < p_.rows; ++i) to[i * p_.n_tasks + p_.tasks[j]] = x[i];
    }

    void add(const std::vector<Index>& chosen, const double* factors, Index count,
             double* const* y) const override {
        const Index size = static_cast<Index>(chosen.size()), q = p_.n_tasks;
        for (Index k = 0; k < count; ++k) {
            apart_.assign(as_size(p_.rows * q), 0.0);
            for (Index i = 0; i < size; ++i) {
                const Index j = chosen[as_size(i)];
                if (const double factor = factors[k * size + i]; factor != 0.0)
                    add_multiple(apart_.data() + p_.tasks[j] * p_.rows, factor, feature(j),
                                 p_.rows);
            }
            for (Index i = 0; i < p_.rows; ++i)
                for (Index t = 0; t < q; ++t) y[k][i * q + t] += apart_[as_size(t * p_.rows + i)];
        }
    }

    // Columns of different tasks are orthogonal.
    void gram(const std::vector<Index>& chosen, Index known, const WeightedBasis& weighted,
              double* gram, Index stride) const override {
        const Index size = static_cast<Index>(chosen.size()), q = p_.n_tasks;
        for (Index r = known; r < size; ++r)
            for (Index c = 0; c < size; ++c) gram[r * stride + c] = gram[c * stride + r] = 0.0;
        std::vector<Index> own;
        for (Index t = 0; t < q; ++t) {
            own.clear();
            Index old = 0;
            for (Index i = 0; i < size; ++i)
                if (p_.tasks[chosen[as_size(i)]] == t) {
                    own.push_back(i);
                    old += i < known;
                }
            const Index all = static_cast<Index>(own.size()), more = all - old;
            if (more == 0) continue;
            apart_.resize(as_size(p_.rows * (all + more)));
            double* scaled = apart_.data() + p_.rows * all;
            for (Index a = 0; a < all; ++a) {
                const double* x = feature(chosen[as_size(own[as_size(a)])]);
                std::copy_n(x, p_.rows, apart_.data() + a * p_.rows);
                for (Index i = 0; a >= old && i < p_.rows; ++i)
                    scaled[(a - old) * p_.rows + i] = x[i] * weighted.curvature[i * q + t];
            }
            sums_.resize(as_size(all * more));
            blas::product(all, more, p_.rows, apart_.data(), p_.rows, scaled, p_.rows, 0.0,
                          sums_.data(), all);
            for (Index b = 0; b < more; ++b)
                for (Index a = 0; a <= old + b; ++a) {
                    const Index r = own[as_size(old + b)], c = own[as_size(a)];
                    gram[r * stride + c] = gram[c * stride + r] = sums_[as_size(b * all + a)];
                }
        }
    }

  private:
    const double* feature(Index j) const { return p_.features + p_.places[j] * p_.rows; }

    TaskPairs p_;
    mutable std::vector<double> apart_, sums_;
};

}  // namespace

std::unique_ptr<FewColumns> task_columns(const TaskPairs& pairs) {
    return std::make_unique<TaskColumns>(pairs);
}

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
