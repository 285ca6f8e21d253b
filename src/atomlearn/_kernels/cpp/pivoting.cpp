// Where the support S and its signs s are known, w is one system: H_SS w_S = linear_S - p_S s_S.
// Coordinates whose sign comes out wrong leave, those whose gradient exceeds their price enter, all
// at once, until none is left. [Portugal, Judice, Vicente 1994; Kim, Park 2008]
#include "pivoting.hpp"

#include <cmath>
#include <vector>

#include "bindings.hpp"
#include "blas.hpp"
#include "factor.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

// Rounds without fewer exchanges than ever before, after which pivoting is left.
constexpr int kPatience = 3;
// Columns that are appended to the factor at once.
constexpr std::size_t kPanel = 64;

class Pivoting {
  public:
    Pivoting(const SignedQuadratic& quadratic, SupportFactor& state)
        : q_(quadratic),
          state_(state),
          signs_(as_size(q_.size), 0.0),
          trial_(as_size(q_.size), 0.0),
          gradient_(as_size(q_.size)),
          linear_(as_size(q_.size)),
          place_(as_size(q_.size), -1) {
        for (Index i = 0; i < state_.count; ++i) place_[as_size(state_.order[i])] = i;
    }

    // The solutions at the prices levels[k] * price, each from the one before.
    Index path(const double* levels, Index count, const double* start, double* rows) {
        const double* price = q_.price;
        scaled_.assign(as_size(q_.size), 0.0);
        q_.price = scaled_.data();
        begin(start);
        for (Index level = 0; level < count; ++level) {
            for (Index j = 0; j < q_.size; ++j) scaled_[as_size(j)] = levels[level] * price[j];
            if (!exchange()) return level;
            std::copy(trial_.begin(), trial_.end(), rows + level * q_.size);
        }
        return count;
    }

  private:
    // Exchanges signs from those at hand, and their gradient, until none is wrong.
    bool exchange() {
        beyond();
        enter();
        Index fewest = q_.size + 1;
        int patience = kPatience;
        while (true) {
            list_support();
            if (static_cast<Index>(support_.size()) > q_.most) return false;
            if (!reach()) {
                state_.count = 0;
                return false;
            }
            solve();
            const Index exchanges = leave() + beyond();
            if (exchanges == 0) return true;
            patience = exchanges < fewest ? kPatience : patience - 1;
            fewest = std::min(fewest, exchanges);
            if (patience < 0) return false;
            for (const Index j : leaving_) signs_[as_size(j)] = 0.0;
            enter();
        }
        return false;
    }

    // The signs of the start, and what is linear in the quadratic: H w + ridge w - slope there.
    void begin(const double* weights) {
        for (Index j = 0; j < q_.size; ++j) {
            signs_[as_size(j)] = (weights[j] > 0.0) - (weights[j] < 0.0);
            gradient_[as_size(j)] = -q_.slope[j];
            linear_[as_size(j)] = q_.ridge * weights[j] - q_.slope[j];
        }
        list_support();
        used_.clear();
        for (const Index j : support_) used_.push_back(-weights[j]);
        subtract_rows(linear_.data(), q_.gram, q_.stride, support_.data(), used_.data(),
                      static_cast<Index>(support_.size()), q_.size);
    }

    bool over(Index j) const {
        const double pull = gradient_[as_size(j)];
        return signs_[as_size(j)] == 0.0 &&
               !((q_.is_signed ? std::abs(pull) : pull) <= q_.price[j] * (1.0 + kDrift));
    }

    // Those that are used and whose sign came out wrong; returns their number.
    Index leave() {
        leaving_.clear();
        for (const Index j : support_)
            if (!(trial_[as_size(j)] * signs_[as_size(j)] > 0.0)) leaving_.push_back(j);
        return static_cast<Index>(leaving_.size());
    }

    // The number of those that want in, listed in entering_.
    Index beyond() {
        entering_.clear();
        for (Index j = 0; j < q_.size; ++j)
            if (over(j)) entering_.push_back(j);
        return static_cast<Index>(entering_.size());
    }

    // Gives signs to those that want in: at most half of the room there is, the largest first.
    void enter() {
        Index used = 0;
        for (const double sign : signs_) used += sign != 0.0;
        const Index room = std::max<Index>(1, (q_.most - used) / 2);
        if (static_cast<Index>(entering_.size()) > room) {
            std::stable_sort(entering_.begin(), entering_.end(), [&](Index a, Index b) {
                return std::abs(gradient_[as_size(a)]) * q_.price[b] >
                       std::abs(gradient_[as_size(b)]) * q_.price[a];
            });
            entering_.resize(as_size(room));
        }
        for (const Index j : entering_)
            signs_[as_size(j)] = gradient_[as_size(j)] > 0.0 ? 1.0 : -1.0;
    }

    void list_support() {
        support_.clear();
        for (Index j = 0; j < q_.size; ++j)
            if (signs_[as_size(j)] != 0.0) support_.push_back(j);
    }

    // Brings the factor to the support: triangular solves for what enters, rotations for what left,
    // or what comes behind the first that left once more, where the BLAS needs less time for it.
    bool reach() {
        Index first = state_.count, left = 0;
        double rotated = 0.0;
        for (Index i = state_.count; i-- > 0;) {
            if (signs_[as_size(state_.order[i])] != 0.0) continue;
            const double behind = static_cast<double>(state_.count - i);
            rotated += behind * behind;
            first = i;
            ++left;
        }
        const double ahead = static_cast<double>(first);
        const double again = static_cast<double>(state_.count - first - left);
        if (again * (ahead * ahead + again * (ahead + again / 3.0)) < kBlasGain * rotated) {
            while (state_.count > first) place_[as_size(state_.order[--state_.count])] = -1;
            return append();
        }
        for (Index i = state_.count; i-- > first;)
            if (signs_[as_size(state_.order[i])] == 0.0) remove(i);
        return append();
    }

    void remove(Index place) {
        factor_delete(state_.factor, state_.stride, state_.count, place);
        place_[as_size(state_.order[place])] = -1;
        std::copy(state_.order + place + 1, state_.order + state_.count, state_.order + place);
        --state_.count;
        for (Index i = place; i < state_.count; ++i) place_[as_size(state_.order[i])] = i;
    }

    // Appends what entered, panel by panel. A column that depends on those in use stays out: the
    // others can take its weight over.
    bool append() {
        fresh_.clear();
        for (const Index j : support_)
            if (place_[as_size(j)] < 0) fresh_.push_back(j);
        if (state_.count + static_cast<Index>(fresh_.size()) > state_.stride) return false;
        for (std::size_t from = 0; from < fresh_.size(); from += kPanel)
            append_panel(fresh_.data() + from,
                         static_cast<Index>(std::min(kPanel, fresh_.size() - from)));
        std::erase_if(support_, [&](Index j) { return signs_[as_size(j)] == 0.0; });
        return true;
    }

    void append_panel(const Index* fresh, Index count) {
        const Index old = state_.count;
        cross_.resize(as_size(old * count));
        corner_.resize(as_size(count * count));
        for (Index c = 0; c < count; ++c) {
            const double* row = q_.gram + fresh[c] * q_.stride;
            double* column = cross_.data() + c * old;
            for (Index i = 0; i < old; ++i) column[i] = row[state_.order[i]];
            double* own = corner_.data() + c * count;
            for (Index r = c; r < count; ++r) own[r] = row[fresh[r]];
            own[c] += q_.ridge;
        }
        blas::solve_lower(old, count, state_.factor, state_.stride, cross_.data(), old);
        blas::add_gram(count, old, -1.0, cross_.data(), std::max<Index>(old, 1), 1.0,
                       corner_.data(), count);
        for (Index c = 0; c < count; ++c) {
            const Index j = fresh[c];
            double* own = corner_.data() + c * count;
            if (!(own[c] > kTiny * (q_.gram[j * q_.stride + j] + q_.ridge))) {
                signs_[as_size(j)] = 0.0;
                continue;
            }
            const double root = std::sqrt(own[c]);
            for (Index r = c; r < count; ++r) own[r] /= root;
            for (Index k = c + 1; k < count; ++k)
                for (Index r = k; r < count; ++r)
                    corner_[as_size(k * count + r)] -= own[k] * own[r];
            const Index place = state_.count++;
            for (Index i = 0; i < old; ++i)
                state_.factor[i * state_.stride + place] = cross_[as_size(c * old + i)];
            // Rows of the panel's columns before this one, as far as they were kept.
            for (Index k = 0; k < c; ++k)
                if (place_[as_size(fresh[k])] >= 0)
                    state_.factor[place_[as_size(fresh[k])] * state_.stride + place] =
                        corner_[as_size(k * count + c)];
            state_.factor[place * state_.stride + place] = root;
            state_.order[place] = j;
            place_[as_size(j)] = place;
        }
    }

    // x = (H_SS + ridge I)^-1 x in the order of the factor.
    void solve_in_place(std::vector<double>& x) {
        factor_solve(state_.factor, state_.stride, state_.count, x.data());
    }

    // The solution for this support and signs, and linear - (H + ridge I) w there.
    void solve() {
        std::vector<double>& x = system_;
        x.assign(as_size(state_.count), 0.0);
        for (const Index j : support_)
            x[as_size(place_[as_size(j)])] = linear_[as_size(j)] - q_.price[j] * signs_[as_size(j)];
        solve_in_place(x);
        std::fill(trial_.begin(), trial_.end(), 0.0);
        for (const Index j : support_) trial_[as_size(j)] = x[as_size(place_[as_size(j)])];
        find_gradient();
        bool exact = true;
        x.assign(as_size(state_.count), 0.0);
        for (const Index j : support_) {
            const double rest = gradient_[as_size(j)] - q_.price[j] * signs_[as_size(j)];
            exact = exact && std::abs(rest) <= kDrift * q_.price[j];
            x[as_size(place_[as_size(j)])] = rest;
        }
        if (exact) return;
        solve_in_place(x);
        for (const Index j : support_) trial_[as_size(j)] += x[as_size(place_[as_size(j)])];
        find_gradient();
    }

    void find_gradient() {
        used_.clear();
        for (const Index j : support_) used_.push_back(trial_[as_size(j)]);
        for (Index j = 0; j < q_.size; ++j)
            gradient_[as_size(j)] = linear_[as_size(j)] - q_.ridge * trial_[as_size(j)];
        subtract_rows(gradient_.data(), q_.gram, q_.stride, support_.data(), used_.data(),
                      static_cast<Index>(support_.size()), q_.size);
    }

    SignedQuadratic q_;
    SupportFactor& state_;
    std::vector<double> signs_, trial_, gradient_, linear_;
    std::vector<Index> place_, support_, leaving_, entering_, fresh_;
    std::vector<double> cross_, corner_, system_, used_, scaled_;
};

}  // namespace

Index pivot_path(const SignedQuadratic& quadratic, const double* levels, Index count,
                 SupportFactor& state, const double* start, double* rows) {
    return Pivoting(quadratic, state).path(levels, count, start, rows);
}

namespace {

// count: in and out the coordinates in the factor. Returns the levels solved.
Index path(const DoubleMatrix& gram, const Doubles& slope, const Doubles& price, double ridge,
           Index most, const Doubles& levels, const OutDoubleMatrix& factor,
           const OutPositions& order, const OutPositions& count, const Doubles& start,
           const OutDoubleMatrix& rows) {
    const SignedQuadratic quadratic{gram.data(),  Index{gram.stride(0)}, size_of(start),
                                    slope.data(), price.data(),          ridge,
                                    most};
    SupportFactor state{factor.data(), size_of(factor, 1), order.data(), count.data()[0]};
    const Index solved =
        pivot_path(quadratic, levels.data(), size_of(levels), state, start.data(), rows.data());
    count.data()[0] = state.count;
    return solved;
}

}  // namespace

void bind_pivoting(nb::module_& m) {
    define(m, "pivot_path", &path);
}

}  // namespace atomlearn
