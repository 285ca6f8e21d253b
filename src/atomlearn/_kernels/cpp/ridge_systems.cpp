#include "ridge_systems.hpp"

#include <cmath>

#include "blas.hpp"
#include "vectors.hpp"

namespace atomlearn {

namespace {

void mirror_lower(std::vector<double>& matrix, Index size) {
    for (Index c = 0; c < size; ++c)
        for (Index r = c + 1; r < size; ++r)
            matrix[as_size(c + r * size)] = matrix[as_size(r + c * size)];
}

// I + S G S over the features in use, S = diag(d)^1/2: never singular.
class FeatureSystem : public RidgeSystem {
  public:
    FeatureSystem(const LeastSquares& loss, Index n_features)
        : loss_(loss), p_(n_features), place_(as_size(n_features)) {
        squared_target = loss.squared_target;
        scores.resize(as_size(p_));
        slopes.resize(as_size(p_));
    }

    bool solve(const std::vector<double>& spread) override {
        used_.clear();
        for (Index j = 0; j < p_; ++j)
            if (spread[as_size(j)] > 0.0) used_.push_back(j);
        const Index k = static_cast<Index>(used_.size());
        provide_entries(used_);
        factor_.resize(as_size(k * k));
        root_.resize(as_size(k));
        solution_.resize(as_size(k));
        for (Index c = 0; c < k; ++c)
            root_[as_size(c)] = std::sqrt(spread[as_size(used_[as_size(c)])]);
        for (Index c = 0; c < k; ++c) {
            const double* row = entries(used_[as_size(c)]);
            double* column = factor_.data() + c * k;
            const double own = root_[as_size(c)];
            for (Index r = c; r < k; ++r)
                column[r] = own * root_[as_size(r)] * row[slot(used_[as_size(r)])];
            column[c] += 1.0;
            solution_[as_size(c)] = own * linear(used_[as_size(c)]);
        }
        if (!blas::cholesky(k, factor_.data(), k)) return false;
        blas::cholesky_solve(k, factor_.data(), k, solution_.data());
        finish();
        return std::isfinite(value) && std::isfinite(residual);
    }

    void hessian(const Groups& groups, const std::vector<Index>& chosen,
                 std::vector<double>& out) override {
        const Index k = static_cast<Index>(used_.size()), f = static_cast<Index>(chosen.size());
        list_features(groups, chosen);
        provide_entries(listed_);
        const Index m = static_cast<Index>(listed_.size());
        gathered_.resize(as_size(m * m));
        for (Index c = 0; c < m; ++c) {
            const double* row = entries(listed_[as_size(c)]);
            double* column = gathered_.data() + c * m;
            for (Index r = 0; r < m; ++r) column[r] = row[slot(listed_[as_size(r)])];
        }
        image_.assign(as_size(m * f), 0.0);
        for (Index c = 0; c < f; ++c) {
            const Index g = chosen[as_size(c)];
            for (Index e = groups.starts[g]; e < groups.starts[g + 1]; ++e) {
                const Index j = groups.members[e];
                add_multiple(image_.data() + c * m, scores[as_size(j)],
                             gathered_.data() + place_[as_size(j)] * m, m);
            }
        }
        out.assign(as_size(f * f), 0.0);
        for (Index c = 0; c < f; ++c)
            for (Index r = c; r < f; ++r) out[as_size(r + c * f)] = sum_over(groups, chosen, r, c);
        explained_.resize(as_size(k * f));
        for (Index c = 0; c < f; ++c)
            for (Index r = 0; r < k; ++r)
                explained_[as_size(r + c * k)] = root_[as_size(r)] * image_[as_size(r + c * m)];
        blas::solve_lower(k, f, factor_.data(), k, explained_.data(), k);
        blas::add_gram(f, k, -1.0, explained_.data(), k, 1.0, out.data(), f);
        mirror_lower(out, f);
    }

  protected:
    // Entries of G between these features are read next.
    virtual void provide_entries(const std::vector<Index>& features) = 0;
    virtual const double* entries(Index feature) const = 0;
    virtual Index slot(Index feature) const = 0;
    virtual double linear(Index feature) const = 0;
    // Sets the scores, and `inner` and `residual` with them, from used_ and weights_.
    virtual void score() = 0;

    void finish() {
        weights_.resize(solution_.size());
        for (std::size_t c = 0; c < solution_.size(); ++c) weights_[c] = root_[c] * solution_[c];
        score();
        slopes = scores;
        for (std::size_t c = 0; c < solution_.size(); ++c)
            slopes[as_size(used_[c])] = solution_[c] / root_[c];
        value = 0.5 * inner;
    }

    const LeastSquares& loss_;
    Index p_;
    std::vector<Index> used_;
    std::vector<double> weights_;

  private:
    // The features of the groups, those in use first and in the order of the factor.
    void list_features(const Groups& groups, const std::vector<Index>& chosen) {
        listed_ = used_;
        std::fill(place_.begin(), place_.end(), Index{-1});
        for (std::size_t c = 0; c < used_.size(); ++c)
            place_[as_size(used_[c])] = static_cast<Index>(c);
        for (const Index g : chosen) {
            for (Index e = groups.starts[g]; e < groups.starts[g + 1]; ++e) {
                const Index j = groups.members[e];
                if (place_[as_size(j)] >= 0) continue;
                place_[as_size(j)] = static_cast<Index>(listed_.size());
                listed_.push_back(j);
            }
        }
    }

    double sum_over(const Groups& groups, const std::vector<Index>& chosen, Index r, Index c) {
        const double* column = image_.data() + c * static_cast<Index>(listed_.size());
        const Index g = chosen[as_size(r)];
        double total = 0.0;
        for (Index e = groups.starts[g]; e < groups.starts[g + 1]; ++e) {
            const auto j = as_size(groups.members[e]);
            total += scores[j] * column[place_[j]];
        }
        return total;
    }

    std::vector<Index> listed_, place_;
    std::vector<double> root_, factor_, solution_, gathered_, image_, explained_;
};

// G and h as they were given.
class GramSystem final : public FeatureSystem {
  public:
    using FeatureSystem::FeatureSystem;

  protected:
    void provide_entries(const std::vector<Index>&) override {}
    const double* entries(Index feature) const override {
        return loss_.gram + feature * loss_.gram_stride;
    }
    Index slot(Index feature) const override { return feature; }
    double linear(Index feature) const override { return loss_.linear[feature]; }

    void score() override {
        std::copy(loss_.linear, loss_.linear + p_, scores.begin());
        subtract_rows(scores.data(), loss_.gram, loss_.gram_stride, used_.data(), weights_.data(),
                      static_cast<Index>(used_.size()), p_);
        double fitted = 0.0, left = 0.0;  // h'w and w'q
        for (std::size_t c = 0; c < used_.size(); ++c) {
            fitted += weights_[c] * loss_.linear[used_[c]];
            left += weights_[c] * scores[as_size(used_[c])];
        }
        inner = squared_target - fitted;
        residual = std::max(inner - left, 0.0);  // y'y - 2 h'w + w'Gw, with Gw = h - q
    }
};

// G and h from the columns, of the features that have been asked for so far.
class ColumnSystem final : public FeatureSystem {
  public:
    ColumnSystem(const LeastSquares& loss, Index n_features)
        : FeatureSystem(loss, n_features),
          slots_(as_size(n_features), Index{-1}),
          linear_(as_size(n_features)),
          dual_(as_size(loss.length)) {}

  protected:
    void provide_entries(const std::vector<Index>& features) override {
        const Index n = loss_.length, first = count_;
        for (const Index j : features)
            if (slots_[as_size(j)] < 0) slots_[as_size(j)] = count_++;
        if (count_ == first) return;
        reserve(first);
        columns_.resize(as_size(n * count_));
        for (const Index j : features) {
            const Index at = slots_[as_size(j)];
            if (at < first) continue;
            const double* column = loss_.columns + j * loss_.stride;
            std::copy(column, column + n, columns_.data() + at * n);
            linear_[as_size(j)] = dot(column, loss_.target, n);
        }
        // Rows first .. count - 1 of G: with those known before, then with each other.
        const double* added = columns_.data() + first * n;
        double* fresh = gram_.data() + first * stride_;
        blas::product(first, count_ - first, n, columns_.data(), n, added, n, 0.0, fresh, stride_);
        blas::add_gram(count_ - first, n, 1.0, added, n, 0.0, fresh + first, stride_);
        for (Index r = first; r < count_; ++r)
            for (Index c = first; c < r; ++c)
                gram_[as_size(r * stride_ + c)] = gram_[as_size(c * stride_ + r)];
        for (Index r = first; r < count_; ++r)
            for (Index c = 0; c < first; ++c)
                gram_[as_size(c * stride_ + r)] = gram_[as_size(r * stride_ + c)];
    }
    const double* entries(Index feature) const override {
        return gram_.data() + slots_[as_size(feature)] * stride_;
    }
    Index slot(Index feature) const override { return slots_[as_size(feature)]; }
    double linear(Index feature) const override { return linear_[as_size(feature)]; }

    void score() override {
        const Index n = loss_.length;
        std::copy(loss_.target, loss_.target + n, dual_.begin());
        subtract_rows(dual_.data(), loss_.columns, loss_.stride, used_.data(), weights_.data(),
                      static_cast<Index>(used_.size()), n);
        inner = residual = 0.0;
        for (Index i = 0; i < n; ++i) {
            inner += dual_[as_size(i)] * loss_.target[i];
            residual += dual_[as_size(i)] * dual_[as_size(i)];
        }
        blas::transposed_product(n, p_, loss_.columns, loss_.stride, dual_.data(), scores.data());
    }

  private:
    void reserve(Index known) {
        if (count_ <= stride_) return;
        const Index stride = std::min(p_, count_ + count_ / 2 + 32);
        std::vector<double> larger(as_size(stride * stride));
        for (Index r = 0; r < known; ++r)
            std::copy(gram_.data() + r * stride_, gram_.data() + r * stride_ + known,
                      larger.data() + r * stride);
        gram_.swap(larger);
        stride_ = stride;
    }

    std::vector<Index> slots_;  // -1: not asked for yet
    Index count_ = 0;
    Index stride_ = 0;
    std::vector<double> linear_, dual_, columns_, gram_;
};

// I + B diag(d) B' over the samples.
class SampleSystem final : public RidgeSystem {
  public:
    SampleSystem(const LeastSquares& loss, Index n_features)
        : loss_(loss), p_(n_features), n_(loss.length), dual_(as_size(loss.length)) {
        squared_target = loss.squared_target;
        scores.resize(as_size(p_));
    }

    bool solve(const std::vector<double>& spread) override {
        Index k = 0;
        for (Index j = 0; j < p_; ++j) k += spread[as_size(j)] > 0.0;
        factor_.resize(as_size(n_ * n_));
        scaled_.resize(as_size(n_ * k));
        k = 0;
        for (Index j = 0; j < p_; ++j) {
            if (!(spread[as_size(j)] > 0.0)) continue;
            const double root = std::sqrt(spread[as_size(j)]);
            const double* column = loss_.columns + j * loss_.stride;
            double* target = scaled_.data() + n_ * k++;
            for (Index i = 0; i < n_; ++i) target[i] = root * column[i];
        }
        blas::add_outer(n_, k, 1.0, scaled_.data(), n_, 0.0, factor_.data(), n_);
        for (Index i = 0; i < n_; ++i) factor_[as_size(i + i * n_)] += 1.0;
        if (!blas::cholesky(n_, factor_.data(), n_)) return false;
        std::copy(loss_.target, loss_.target + n_, dual_.begin());
        blas::cholesky_solve(n_, factor_.data(), n_, dual_.data());
        blas::transposed_product(n_, p_, loss_.columns, loss_.stride, dual_.data(), scores.data());
        slopes = scores;  // w = diag(d) B'v with the dual v = target - B w: no difference
        inner = residual = 0.0;
        for (Index i = 0; i < n_; ++i) {
            inner += dual_[as_size(i)] * loss_.target[i];
            residual += dual_[as_size(i)] * dual_[as_size(i)];
        }
        value = 0.5 * inner;
        return std::isfinite(value) && std::isfinite(residual);
    }

    void hessian(const Groups& groups, const std::vector<Index>& chosen,
                 std::vector<double>& out) override {
        const Index f = static_cast<Index>(chosen.size());
        image_.assign(as_size(n_ * f), 0.0);
        for (Index c = 0; c < f; ++c) {
            const Index g = chosen[as_size(c)];
            for (Index e = groups.starts[g]; e < groups.starts[g + 1]; ++e) {
                const Index j = groups.members[e];
                add_multiple(image_.data() + c * n_, scores[as_size(j)],
                             loss_.columns + j * loss_.stride, n_);
            }
        }
        blas::solve_lower(n_, f, factor_.data(), n_, image_.data(), n_);
        out.assign(as_size(f * f), 0.0);
        blas::add_gram(f, n_, 1.0, image_.data(), n_, 0.0, out.data(), f);
        mirror_lower(out, f);
    }

  private:
    const LeastSquares& loss_;
    Index p_, n_;
    std::vector<double> dual_, factor_, scaled_, image_;
};

// Whichever of the two is smaller for the features in use.
class SmallerSystem final : public RidgeSystem {
  public:
    SmallerSystem(const LeastSquares& loss, Index n_features)
        : n_(loss.length), features_(loss, n_features), samples_(loss, n_features) {
        squared_target = loss.squared_target;
    }

    bool solve(const std::vector<double>& spread) override {
        Index used = 0;
        for (const double d : spread) used += d > 0.0;
        last_ = used > n_ ? static_cast<RidgeSystem*>(&samples_) : &features_;
        if (!last_->solve(spread)) return false;
        scores = last_->scores;
        slopes = last_->slopes;
        value = last_->value;
        residual = last_->residual;
        inner = last_->inner;
        return true;
    }

    void hessian(const Groups& groups, const std::vector<Index>& chosen,
                 std::vector<double>& out) override {
        last_->hessian(groups, chosen, out);
    }

  private:
    Index n_;
    ColumnSystem features_;
    SampleSystem samples_;
    RidgeSystem* last_ = nullptr;
};

}  // namespace

std::unique_ptr<RidgeSystem> ridge_system(const LeastSquares& loss, Index n_features) {
    if (loss.gram != nullptr) return std::make_unique<GramSystem>(loss, n_features);
    return std::make_unique<SmallerSystem>(loss, n_features);
}

}  // namespace atomlearn
