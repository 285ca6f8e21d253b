// Proximal Newton steps at several levels of a penalty, by one model of the loss.
//
// A step minimizes the second-order model of the loss over the columns in use and those that want
// in, the free columns minimised out, with the norm kept as it is; a search on the objective
// decides how far to go there. Slopes are exact, the model's Hessian is kept: it serves many steps
// and levels, is extended by the columns that join, and is made anew at the curvatures of a point
// once the steps that it costs add up to the work of a new one. Some levels are on their way at
// once, so that their slopes and moves take one reading of the columns. No certificate is formed:
// the caller prices the points. [Lee, Sun, Saunders 2014; Yuan, Ho, Lin 2012, for the models of few
// columns]
//
// Where sparse columns make a Hessian dearer than products with it, none is formed: sweeps of
// coordinate descent over the samples choose the columns in use, conjugate gradients solve for
// them, and a level starts on the line through the ends of the two levels before.
#include <nanobind/stl/tuple.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "active_set.hpp"
#include "bindings.hpp"
#include "blas.hpp"
#include "few_columns.hpp"
#include "newton.hpp"
#include "pivoting.hpp"
#include "vectors.hpp"

namespace atomlearn {
namespace {

constexpr Index kMostPivots = 100000;
// As many columns as this part of those in use may enter at a time.
constexpr Index kShare = 16;
// A kept Hessian will do while a step with it promises less than this share of the step before.
constexpr double kContraction = 0.8;
// The first damping, after a step that was cut short.
constexpr double kFirstDamping = 1e-4;
// Models of more columns, or of so many multiplications to make, are left to other methods.
constexpr Index kMostColumns = 10000;
constexpr double kMostWork = 1e11;
// Multiplications of a Hessian in a second, on a slow processor.
constexpr double kSlowest = 2e9;
// What the last step promises may be lost in rounding, this share of the objective; its end may
// not.
constexpr double kRounding = 1e-15;
// A group is at its minimum where its slope is off by this share of its price.
constexpr double kExact = 1e-12;
// Newton steps over groups for one model, and trials of each.
constexpr int kMostRounds = 20, kFewTrials = 6;
// Solutions with the factor at hand that a minimum by signs takes.
constexpr double kSolutions = 2.0;
// A step over the samples reduces the error of the slopes to this share: that of the model remains.
constexpr double kShareOff = 0.1;
// Conjugate gradients for the columns in use end at this share of that error.
constexpr double kShareLeft = 0.3;
// After so many turns they end where a sign would change, too: the signs at hand are not the right
// ones, and the system may be close to singular.
constexpr Index kSureTurns = 10;
// A model that promises so many times the objective lacks curvature.
constexpr double kAbsurd = 100.0;
// Operations for an entry of a sparse column in a sweep, which reads and writes scattered numbers.
constexpr double kScattered = 2.0;
// Levels that begin at a time.
constexpr Index kBeginning = 2;

// f(z) by functions of Python, which read the point and write the derivatives where both see them.
// f'' is diag(c) - K K'; K has columns where f couples `coupled` samples (0: all), and Python reads
// columns a in `batch`, and returns K'a. `smoothness` bounds the second derivative for a unit
// weight, infinity where nothing does.
struct PythonLoss {
    nb::callable value_, differentiate_, curve_, bend_, couple_;
    OutDoubles point, first, second;
    OutDoubleMatrix batch;
    Doubles weight;
    double smoothness;
    bool quadratic;
    Index coupled;

    Index count() const { return size_of(point); }
    bool couples() const { return coupled != 1; }
    // Appends the rows K'a, `free` numbers apart, of the first `rows` of the batch.
    Index couple(Index rows, Index free, std::vector<double>& to) const {
        const nb::gil_scoped_acquire acquire;
        const nb::object found = couple_(rows);
        const auto pulled = nb::cast<Rows>(found);
        expect(size_of(pulled) == rows, "the coupling must have a row a column");
        const Index width = size_of(pulled, 1);
        for (Index row = 0; row < rows; ++row) {
            to.insert(to.end(), pulled.data() + row * width, pulled.data() + (row + 1) * width);
            to.resize(to.size() + as_size(free));
        }
        return width;
    }
    double value(const double* z) const {
        std::copy_n(z, count(), point.data());
        const nb::gil_scoped_acquire acquire;
        return nb::cast<double>(value_());
    }
    // f'.
    void differentiate(const double* z, double* slope) const {
        call(differentiate_, z);
        std::copy_n(first.data(), count(), slope);
    }
    // The diagonal c.
    void curve(const double* z, double* curvature) const {
        call(curve_, z);
        std::copy_n(second.data(), count(), curvature);
    }
    // f*(share f'(z)) - share <f'(z), z>, at a `slope` f'(z).
    double bend(const double* z, const double* slope, double share) const {
        std::copy_n(z, count(), point.data());
        std::copy_n(slope, count(), first.data());
        const nb::gil_scoped_acquire acquire;
        return nb::cast<double>(bend_(share));
    }

  private:
    void call(const nb::callable& function, const double* z) const {
        std::copy_n(z, count(), point.data());
        const nb::gil_scoped_acquire acquire;
        function();
    }
};

// What a level asks:  level g + coupling/2 g^2 + ridge/2 c'Mc  with the gauge g = p'|c|, or the sum
// over groups of p ||c_group||, and g <= radius where that is finite.
struct Terms {
    double level, coupling, ridge, radius;
};

// min over c, b of  f(A c + Q b) + the terms of each level, over c >= 0 where not `is_signed`.
// `free` columns Q, one after the other. No metric: M is I. Group k holds members[starts[k]] to
// members[starts[k + 1]]; no `starts`: each column is one.
struct PricedProblem {
    const FewColumns& columns;
    Index count;
    const PythonLoss& loss;
    const double* metric;
    const double* price;
    const Terms* terms;
    Index levels;
    const double* basis;
    Index free;
    bool is_signed;
    const Index* starts;
    const Index* members;
    Index groups;
};

// The Hessian of the last model, kept for the next: of the columns `chosen`, less their projections
// on the free ones (`means`, a row of `free` numbers each), at curvatures that were `curvature`
// before damping, rows `stride` apart, and the factor of those of them that the last minimum used;
// `inner` is the factor of Q'DQ, L. Where the columns or the loss ask for it, `pulled` has K'a and
// L'M for each column, `height` numbers: their products are subtracted. `around` are the
// predictions at which K is. `axes` has the eigenvectors and then the eigenvalues of the corner of
// each group. Where chosen columns are rows of `tasks` tasks, `gram` is the Hessian of each task.
// Valid as long as columns keep their numbers.
struct KeptHessian {
    using Square = std::unique_ptr<double[]>;  // what is not written costs nothing
    std::vector<Index> chosen, order;
    std::vector<double> curvature, damped, means, inner, basis, pulled, pulled_basis, shares,
        around;
    std::vector<std::vector<double>> axes;
    Index height = 0, tasks = 1;
    Square gram, factor;
    Index stride = 0, factored = 0;
    double damping = 0.0, ridge = 0.0;
    double waste = 0.0;  // operations of the steps that a new one would have saved
    // What a level took last: sweeps over the samples, or new Hessians.
    double sweeps = 30.0, hessians = 1.0;
};

struct NewtonLimits {
    double gap;      // a level ends where about so much is left, as the kernel sees it; 0: never
    double share;    // or this share of the objective
    Index steps;     // at most so many steps a level
    double seconds;  // ends after so many
};

// A level on its way.
struct Point {
    Index number;
    Terms terms;
    std::vector<double> w, b, linear, slope, scores, surplus;
    // The end of a step over the chosen columns, its beginning, and how it moves the rest.
    std::vector<double> end, start, turn, move;
    double value = kInfinity, gap = kInfinity, promised = 0.0;
    Index steps = 0;
    int idle = 0;
    bool sloped = false;  // whether `slope` is that of `linear`
    bool fresh = false, last = false, done = false;
};

// Moves the points, from that of the first row on, until each gap is small, a step promises no
// decrease beyond rounding, or a limit is met. No point is worse than its start, that of the level
// before.
class Fit {
  public:
    Fit(const PricedProblem& problem, double* weights, double* shifts, const NewtonLimits& limits,
        KeptHessian& kept)
        : p_(problem),
          n_(problem.loss.count()),
          weights_(weights),
          shifts_(shifts),
          limits_(limits),
          trial_(as_size(n_)),
          k_(kept),
          place_(as_size(p_.count), -1) {
        bool mine = as_size(n_) == k_.curvature.size() &&
                    k_.basis.size() == as_size(n_ * p_.free) &&
                    std::equal(k_.basis.begin(), k_.basis.end(), p_.basis);
        for (const Index j : k_.chosen) mine = mine && j < p_.count;
        if (!mine) {
            k_ = KeptHessian{};
            k_.basis.assign(p_.basis, p_.basis + n_ * p_.free);
        }
        for (std::size_t i = 0; i < k_.chosen.size(); ++i)
            place_[as_size(k_.chosen[i])] = static_cast<Index>(i);
        if (!k_.damped.empty() && p_.loss.couples()) couple_again();
        of_.resize(as_size(p_.starts ? p_.count : 0));
        for (Index k = 0; p_.starts && k < p_.groups; ++k)
            for (Index e = p_.starts[k]; e < p_.starts[k + 1]; ++e) of_[as_size(p_.members[e])] = k;
    }

    // Returns how many levels have begun; `steps` counts those of all.
    Index run(Index& steps) {
        forget_other_weights();
        Index begun = 0;
        while (true) {
            begun = begin(begun);
            if (points_.empty()) break;
            find_slopes();
            for (auto& p : points_) p->done = p->done || is_near(*p);
            retire();
            if (points_.empty()) continue;
            if (spent() >= limits_.seconds) break;
            if (by_samples_) {
                descend(*points_.front());
            } else {
                if (!model()) break;
                for (auto& p : points_) {
                    p->move.clear();
                    if (!alone_ || p == points_.front()) plan(*p);
                }
            }
            move_all();
            for (auto& p : points_) advance(*p);
            retire();
            if (std::exchange(turned_, false)) set_mode(false);
        }
        for (auto& p : points_) p->done = true;
        retire();
        set_mode(false);
        steps = steps_;
        return begun;
    }

  private:
    double spent() const {
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun_;
        return passed.count();
    }
    bool is_quadratic() const { return p_.loss.quadratic; }
    // What inner methods add to the diagonal: a metric is part of the Hessian that they get.
    double diagonal(const Terms& t) const { return p_.metric == nullptr ? t.ridge : 0.0; }

    double gauge(const double* w) const {
        double total = 0.0;
        for (Index k = 0; k < p_.groups; ++k) total += p_.price[k] * length(w, k);
        return total;
    }
    // The length of a group of x.
    double length(const double* x, Index k) const {
        if (!p_.starts) return std::fabs(x[k]);
        double square = 0.0;
        for (Index e = p_.starts[k]; e < p_.starts[k + 1]; ++e)
            square += x[p_.members[e]] * x[p_.members[e]];
        return std::sqrt(square);
    }
    // A column of a group.
    Index first(Index k) const { return p_.starts ? p_.members[p_.starts[k]] : k; }
    Index group_of(Index j) const { return p_.starts ? of_[as_size(j)] : j; }
    Index members(Index k) const { return p_.starts ? p_.starts[k + 1] - p_.starts[k] : 1; }
    // y += ridge M w.
    void add_ridge(double ridge, const double* w, double* y) const {
        for (Index j = 0; ridge > 0.0 && j < p_.count; ++j) {
            if (w[j] == 0.0) continue;
            if (p_.metric == nullptr)
                y[j] += ridge * w[j];
            else
                add_multiple(y, ridge * w[j], p_.metric + j * p_.count, p_.count);
        }
    }
    // The terms of a level at w.
    double penalty(const Terms& t, const double* w) const {
        double square = 0.0;
        if (t.ridge > 0.0 && p_.metric == nullptr) square = dot(w, w, p_.count);
        for (Index j = 0; t.ridge > 0.0 && p_.metric != nullptr && j < p_.count; ++j)
            if (w[j] != 0.0) square += w[j] * dot(p_.metric + j * p_.count, w, p_.count);
        const double g = gauge(w);
        return t.level * g + 0.5 * t.coupling * g * g + 0.5 * t.ridge * square;
    }

    // What the smooth part pulls a group with, per unit of its price.
    double pull(const Point& p, Index k) const {
        return (p_.is_signed ? length(p.scores.data(), k) : -at(p.scores, k)) / p_.price[k];
    }

    // Lets levels begin where the one before them is after its first step; returns how many have.
    Index begin(Index begun) {
        const auto before = newest_;
        if (before && before->steps == 0 && !before->done) return begun;
        // Over the samples, a level begins where the one before it ends.
        const bool samples =
            begun < p_.levels && prefers_samples(before ? before->w.data() : weights_);
        if ((samples || by_samples_ || alone_) && !points_.empty()) return begun;
        set_mode(samples);
        const Index most = before && !samples ? kBeginning : 1;
        for (Index more = 0; more < most && begun < p_.levels; ++more) {
            if (static_cast<Index>(points_.size()) >= kVectorLanes) break;
            auto p = std::make_shared<Point>();
            earlier_ = std::exchange(last_, newest_);
            newest_ = p;
            points_.push_back(p);
            p->number = begun;
            p->terms = p_.terms[begun++];
            if (before) {
                p->w = before->w;
                p->b = before->b;
                p->linear = before->linear;
                p->slope = before->slope;
                p->sloped = before->sloped;
                p->value = before->value - penalty(before->terms, p->w.data());
            } else {
                set_out(*p);
            }
            p->value += penalty(p->terms, p->w.data());
            if (samples && earlier_) extrapolate(*p, *earlier_);
            p->done = !std::isfinite(p->value);
            p->slope.resize(as_size(n_));
            p->scores.resize(as_size(p_.count));
            p->surplus.resize(as_size(p_.free));
        }
        return begun;
    }

    // Moves the start of a level, the end of the one before, as far along the line from the end
    // of the level before that as the levels lie apart, if the objective falls. A weight whose
    // sign would change is 0.
    void extrapolate(Point& p, const Point& earlier) {
        const double level = p_.terms[p.number - 1].level;
        const double share = (p.terms.level - level) / (level - earlier.terms.level);
        if (!(share > 0.0)) return;
        reached_.assign(as_size(p_.count), 0.0);
        std::vector<Index> cut;
        std::vector<double> changes;
        for (Index j = 0; j < p_.count; ++j) {
            const double now = at(p.w, j), to = now + share * (now - at(earlier.w, j));
            if (to * now > 0.0) {
                at(reached_, j) = to;
            } else if (to != 0.0) {
                cut.push_back(j);
                changes.push_back(-to);
            }
        }
        std::vector<double> b(p.b);
        for (Index q = 0; q < p_.free; ++q) at(b, q) += share * (at(b, q) - at(earlier.b, q));
        for (Index i = 0; i < n_; ++i)
            at(trial_, i) = at(p.linear, i) + share * (at(p.linear, i) - at(earlier.linear, i));
        double* linear = trial_.data();
        p_.columns.add(cut, changes.data(), 1, &linear);
        const double value = p_.loss.value(linear) + penalty(p.terms, reached_.data());
        if (!(value < p.value)) return;
        p.w.swap(reached_);
        p.b.swap(b);
        p.linear.swap(trial_);
        p.value = value;
        p.sloped = false;
    }

    void set_out(Point& p) {
        p.w.assign(weights_, weights_ + p_.count);
        p.b.assign(shifts_, shifts_ + p_.free);
        p.linear.assign(as_size(n_), 0.0);
        double* y = p.linear.data();
        for (Index q = 0; q < p_.free; ++q) add_multiple(y, at(p.b, q), p_.basis + q * n_, n_);
        std::vector<Index> used;
        std::vector<double> factors;
        for (Index j = 0; j < p_.count; ++j) {
            if (at(p.w, j) == 0.0) continue;
            used.push_back(j);
            factors.push_back(at(p.w, j));
        }
        p_.columns.add(used, factors.data(), 1, &y);
        p.value = p_.loss.value(y);
    }

    // Writes the points that are at their end.
    void retire() {
        std::size_t kept = 0;
        for (auto& p : points_) {
            if (!p->done) {
                points_[kept++] = p;
                continue;
            }
            std::copy(p->w.begin(), p->w.end(), weights_ + p->number * p_.count);
            std::copy(p->b.begin(), p->b.end(), shifts_ + p->number * p_.free);
        }
        if (!by_samples_ && kept < points_.size()) {
            const double ended = static_cast<double>(points_.size() - kept);
            k_.hessians = std::max(1.0, std::exchange(made_, 0.0) / ended);
        }
        points_.resize(kept);
    }

    void find_slopes() {
        std::vector<const double*> slopes;
        const Index count = static_cast<Index>(points_.size());
        for (auto& p : points_) {
            if (!p->sloped) p_.loss.differentiate(p->linear.data(), p->slope.data());
            p->sloped = true;
            slopes.push_back(p->slope.data());
        }
        scores_.resize(as_size(count * p_.count));
        p_.columns.scores(slopes.data(), count, scores_.data(), p_.count);
        for (Index k = 0; k < count; ++k) {
            Point& p = *points_[as_size(k)];
            std::copy_n(scores_.data() + k * p_.count, p_.count, p.scores.data());
            add_ridge(p.terms.ridge, p.w.data(), p.scores.data());
            for (Index q = 0; q < p_.free; ++q)
                at(p.surplus, q) = dot(p_.basis + q * n_, p.slope.data(), n_);
        }
    }

    // Whether the gap is small: of the dual point -f', scaled into the unit ball of the polar, to
    // second order.
    bool is_near(Point& p) const {
        const double enough = std::max(limits_.gap, limits_.share * p.value);
        p.gap = gap(p, enough);
        return enough > 0.0 && p.gap <= enough;
    }

    double gap(const Point& p, double enough) const {
        const Terms& t = p.terms;
        double polar = 0.0;
        const double g = gauge(p.w.data()), along = -dot(p.w.data(), p.scores.data(), p_.count);
        for (Index k = 0; k < p_.groups; ++k) polar = std::max(polar, pull(p, k));
        if (t.radius < kInfinity) return t.radius * polar - along;
        if (t.coupling > 0.0)
            return 0.5 * t.coupling * g * g + 0.5 * polar * polar / t.coupling - along;
        const double beyond = std::max(polar / t.level - 1.0, 0.0);
        if (t.ridge > 0.0) return t.level * g - along + p.value * beyond;
        const double share = 1.0 / (1.0 + beyond);
        const double open = t.level * g - share * along;
        // What is open already is enough to go on.
        if (!(share < 1.0 && open <= enough)) return open;
        // f*(share u) <= share f*(u), as f >= 0. Of a loss that couples samples the conjugate
        // itself takes as long as a step, and only tells of a start that it needs none.
        const double smooth = p.value - t.level * g, most = open + (1.0 - share) * smooth;
        const bool settled = most <= enough || (p.steps > 0 && p_.loss.couples());
        if (settled) return most;
        return open + smooth + p_.loss.bend(p.linear.data(), p.slope.data(), share);
    }

    // The price of a unit of the gauge at this point; in the ball, only where its bound is reached.
    double cost(const Point& p) const {
        const double g = gauge(p.w.data());
        if (p.terms.radius < kInfinity) {
            const double along = -dot(p.w.data(), p.scores.data(), p_.count);
            return g < p.terms.radius * (1.0 - 1e-12) ? 0.0 : along / p.terms.radius;
        }
        return p.terms.coupling > 0.0 ? p.terms.coupling * g : p.terms.level;
    }

    // The columns of groups that want in, the most violated ones of each level where they are many.
    void find_entering() {
        entering_.clear();
        std::vector<Index> wanting;
        for (auto& p : points_) {
            wanting.clear();
            Index used = 0;
            const double least = cost(*p);
            for (Index k = 0; k < p_.groups; ++k) {
                const bool in_use = length(p->w.data(), k) != 0.0;
                used += in_use;
                if (place_[as_size(first(k))] != -1) continue;
                if (in_use)
                    add_entering(k);
                else if (pull(*p, k) > least)
                    wanting.push_back(k);
            }
            const Index most = std::max(kEntering, used / kShare);
            if (static_cast<Index>(wanting.size()) > most) {
                std::stable_sort(wanting.begin(), wanting.end(),
                                 [&](Index a, Index b) { return pull(*p, a) > pull(*p, b); });
                wanting.resize(as_size(most));
            }
            for (const Index k : wanting) add_entering(k);
        }
        for (const Index j : entering_) place_[as_size(j)] = -1;
    }

    void add_entering(Index k) {
        const Index from = p_.starts ? p_.starts[k] : k;
        for (Index e = from; e < from + members(k); ++e) {
            entering_.push_back(p_.starts ? p_.members[e] : k);
            place_[as_size(entering_.back())] = kListed;
        }
    }

    // A quadratic has one Hessian: that of the same weights of samples.
    void forget_other_weights() {
        std::vector<double> own(k_.curvature);
        if (is_quadratic()) {
            own.resize(as_size(n_));
            p_.loss.curve(trial_.data(), own.data());
        }
        const Index tasks = is_quadratic() && shares_tasks(own) ? p_.columns.tasks() : 1;
        if (own == k_.curvature && tasks == k_.tasks) return;
        forget();
        k_.tasks = tasks;
    }

    // Whether each task has the same Hessian, and no other with it: columns in whole rows.
    bool shares_tasks(const std::vector<double>& curvature) const {
        const Index q = p_.columns.tasks();
        if (!p_.starts || p_.free > 0 || p_.metric != nullptr || p_.terms->coupling > 0.0)
            return false;
        for (Index k = 0; k <= p_.groups; ++k)
            if (p_.starts[k] % q != 0) return false;
        for (Index e = 0; e < p_.count; ++e)
            if (p_.columns.entry(p_.members[e]) !=
                p_.columns.entry(p_.members[e - e % q]) / q * q + e % q)
                return false;
        for (Index i = 0; i < n_; ++i)
            if (at(curvature, i) != at(curvature, i - i % q)) return false;
        return true;
    }

    void forget() {
        for (const Index j : k_.chosen) place_[as_size(j)] = -1;
        k_.chosen.clear();
        k_.means.clear();
        k_.pulled.clear();
        k_.axes.clear();
        k_.damped.clear();
        k_.factored = 0;
    }

    // K at the point of the Hessian at hand, which another loss would not have.
    void couple_again() {
        std::vector<double> own(as_size(n_));
        p_.loss.curve(k_.around.data(), own.data());
        if (own != k_.curvature) forget();
    }

    // Operations of a step of one level, in entries that are read.
    double work_of_step(double size) const {
        const double entries = p_.columns.entries(), share = size / static_cast<double>(p_.count);
        return entries * (1.0 + share) / static_cast<double>(points_.size()) +
               static_cast<double>(n_ * kCostly) + std::max(work_of_model_, size * size);
    }

    // The point whose curvatures a new Hessian has to have; null where the one at hand will do.
    const Point* due() {
        if (k_.damped.empty()) return points_.front().get();
        if (is_quadratic()) return refresh_ ? points_.front().get() : nullptr;
        if (alone_) return points_.front().get();
        const double size = static_cast<double>(k_.chosen.size());
        const double step = work_of_step(size),
                     whole = p_.columns.gram_work(size) +
                             static_cast<double>(width()) * size * size / kBlasGain;
        const Point* latest = nullptr;
        for (auto& p : points_) {
            if (refresh_ == p.get()) return refresh_;
            if (p->steps < kFreeSteps && step < whole) continue;
            latest = p.get();
            k_.waste += step;
        }
        return k_.waste >= whole ? latest : nullptr;
    }

    // H over the chosen columns. False where nothing has curvature, or the model would be too
    // large.
    bool model() {
        const double ridge = points_.front()->terms.ridge;
        if (p_.metric != nullptr && ridge != k_.ridge) {
            k_.ridge = ridge;
            forget();
        }
        const Point* around = due();
        refresh_ = nullptr;
        for (auto& p : points_) p->fresh = is_quadratic() || p.get() == around;
        if (around != nullptr) {
            forget();
            made_ += 1.0;
            k_.waste = 0.0;
            k_.curvature.resize(as_size(n_));
            p_.loss.curve(around->linear.data(), k_.curvature.data());
            if (p_.loss.couples()) {
                k_.around = around->linear;
                couple_basis();
            }
            damp();
            while (!has_curvature() && k_.damping < 1.0) {
                more_damping();  // straight everywhere
                damp();
            }
            if (!has_curvature()) {
                forget();
                return false;
            }
        }
        find_entering();
        const Index known = static_cast<Index>(k_.chosen.size());
        const Index size = known + static_cast<Index>(entering_.size());
        const Index q = k_.tasks;
        const double made = static_cast<double>(n_ / q) * static_cast<double>(size / q) *
                            static_cast<double>((size - known) / q);
        // What would end after the time is not begun.
        const double most = std::min(kMostWork, kSlowest * (limits_.seconds - spent()));
        if (size == 0 || size / q > kMostColumns || made > most) return false;
        extend(known, size);
        return true;
    }

    void damp() {
        k_.damped = k_.curvature;
        const double* s = p_.loss.weight.data();
        double most = p_.loss.smoothness;
        if (k_.damping > 0.0 && !std::isfinite(most)) {  // the largest there is
            most = 0.0;
            for (Index i = 0; i < n_; ++i)
                if (s[i] > 0.0) most = std::max(most, at(k_.curvature, i) / s[i]);
            if (most == 0.0) most = 1.0;
        }
        for (Index i = 0; k_.damping > 0.0 && i < n_; ++i)
            at(k_.damped, i) += k_.damping * most * s[i];
    }

    // Whether Q'DQ, or D where there is no Q, is positive; factors it.
    bool has_curvature() {
        const Index free = p_.free;
        double mass = 0.0;
        for (const double d : k_.damped) mass += d;
        if (!(mass > 0.0)) return false;
        k_.inner.assign(as_size(free * free), 0.0);
        for (Index q = 0; q < free; ++q) {
            const double* own = p_.basis + q * n_;
            for (Index i = 0; i < n_; ++i) at(trial_, i) = at(k_.damped, i) * own[i];
            for (Index p = q; p < free; ++p)
                at(k_.inner, q * free + p) = dot(p_.basis + p * n_, trial_.data(), n_) -
                                             dot(pulled_basis(p), pulled_basis(q), width());
        }
        return blas::cholesky(free, k_.inner.data(), free);
    }

    // Entries of K'a; none where the loss couples nothing.
    Index width() const { return p_.loss.couples() ? k_.height - p_.free : 0; }
    const double* pulled_basis(Index q) const { return k_.pulled_basis.data() + q * width(); }

    void couple_basis() {
        k_.pulled_basis.clear();
        k_.shares.clear();
        Index width = 0;
        const Index most = size_of(p_.loss.batch);
        for (Index q = 0; q < std::max<Index>(p_.free, 1); q += most) {
            const Index rows = std::min(p_.free - q, most);
            std::copy_n(p_.basis + q * n_, rows * n_, p_.loss.batch.data());
            width = p_.loss.couple(rows, 0, k_.pulled_basis);
        }
        k_.height = width + p_.free;
    }

    // Makes room for those entering, and keeps of the others those in use and in the factor.
    Index keep_used() {
        std::vector<Index> kept, where(k_.chosen.size(), -1);
        std::vector<char> needed(k_.chosen.size(), 0);
        for (Index i = 0; i < k_.factored; ++i) needed[as_size(k_.order[as_size(i)])] = 1;
        for (auto& p : points_)
            for (std::size_t i = 0; i < k_.chosen.size(); ++i)
                if (length(p->w.data(), group_of(k_.chosen[i])) != 0.0) needed[i] = 1;
        for (std::size_t i = 0; i < k_.chosen.size(); ++i) {
            if (needed[i] == 0) continue;
            where[i] = static_cast<Index>(kept.size());
            kept.push_back(static_cast<Index>(i));
        }
        const Index count = static_cast<Index>(kept.size());
        const Index size = count + static_cast<Index>(entering_.size());
        const Index old = k_.stride, stride = std::min(p_.count, 2 * size) / k_.tasks,
                    free = p_.free;
        KeptHessian::Square gram(new double[as_size(stride * stride)]),
            factor(new double[as_size(stride * stride)]);
        for (Index r = 0; r < count; r += k_.tasks) {
            const double* from = row(kept[as_size(r)]);
            for (Index c = 0; c < count; c += k_.tasks)
                gram[as_size((r * stride + c) / k_.tasks)] = from[kept[as_size(c)] / k_.tasks];
        }
        for (Index r = 0; r < k_.factored; ++r)
            std::copy_n(k_.factor.get() + r * old + r, k_.factored - r,
                        factor.get() + r * stride + r);
        k_.gram.swap(gram);
        k_.factor.swap(factor);
        k_.order.resize(std::max(k_.order.size(), as_size(stride)));
        k_.stride = stride;
        for (Index i = 0; i < k_.factored; ++i)
            k_.order[as_size(i)] = where[as_size(k_.order[as_size(i)])];
        for (const Index j : k_.chosen) place_[as_size(j)] = -1;
        for (Index i = 0; i < count; ++i) {
            const Index from = kept[as_size(i)];
            k_.chosen[as_size(i)] = k_.chosen[as_size(from)];
            std::copy_n(k_.means.data() + from * free, free, k_.means.data() + i * free);
            if (!k_.pulled.empty())
                std::copy_n(k_.pulled.data() + from * k_.height, k_.height,
                            k_.pulled.data() + i * k_.height);
            place_[as_size(k_.chosen[as_size(i)])] = i;
        }
        k_.chosen.resize(as_size(count));
        k_.means.resize(as_size(count * free));
        if (!k_.pulled.empty()) k_.pulled.resize(as_size(count * k_.height));
        k_.axes.clear();
        return count;
    }

    void extend(Index known, Index size) {
        if (size == known) return;
        if (size > k_.stride * k_.tasks) {
            known = keep_used();
            size = known + static_cast<Index>(entering_.size());
        }
        for (const Index j : entering_) {
            place_[as_size(j)] = static_cast<Index>(k_.chosen.size());
            k_.chosen.push_back(j);
        }
        k_.means.resize(as_size(size * p_.free));
        const bool apart = p_.loss.couples() || (p_.free > 0 && !p_.columns.projects());
        if (apart) couple(known, size);
        project(known, size);
        const WeightedBasis weighted{k_.damped.data(), p_.basis, apart ? 0 : p_.free,
                                     k_.means.data()};
        std::vector<Index> own;
        for (Index i = 0; i < size; i += k_.tasks) own.push_back(k_.chosen[as_size(i)]);
        p_.columns.gram(own, known / k_.tasks, weighted, k_.gram.get(), k_.stride);
        if (apart) subtract_pulled(known, size);
        if (p_.metric == nullptr) return;
        for (Index r = known; r < size; ++r) {
            const double* row = p_.metric + k_.chosen[as_size(r)] * p_.count;
            for (Index c = 0; c < size; ++c) {
                const double more = k_.ridge * row[k_.chosen[as_size(c)]];
                k_.gram[as_size(r * k_.stride + c)] += more;
                if (c < known) k_.gram[as_size(c * k_.stride + r)] += more;
            }
        }
    }

    // K'a of those that enter.
    void couple(Index known, Index size) {
        if (!p_.loss.couples()) {
            k_.height = p_.free;
            k_.pulled.resize(as_size(size * k_.height));
            return;
        }
        k_.pulled.reserve(as_size(size * k_.height));
        if (p_.columns.tasks() > 1 && p_.columns.tasks() == p_.loss.coupled) {
            if (k_.shares.empty()) couple_tasks();
            k_.pulled.resize(as_size(size * k_.height));
            for (Index c = known; c < size; ++c)
                p_.columns.spread(k_.chosen[as_size(c)], k_.shares.data(),
                                  k_.pulled.data() + c * k_.height);
            return;
        }
        const Index most = size_of(p_.loss.batch);
        for (Index c = known; c < size; c += most) {
            const Index rows = std::min(size - c, most);
            for (Index row = 0; row < rows; ++row)
                p_.columns.copy(k_.chosen[as_size(c + row)], p_.loss.batch.data() + row * n_);
            p_.loss.couple(rows, p_.free, k_.pulled);
        }
    }

    // K'e of the samples e of each task: a K that couples the tasks of a row only is diagonal in
    // rows.
    void couple_tasks() {
        const Index q = p_.columns.tasks(), most = size_of(p_.loss.batch);
        for (Index t = 0; t < q; t += most) {
            const Index rows = std::min(q - t, most);
            std::fill_n(p_.loss.batch.data(), rows * n_, 0.0);
            for (Index row = 0; row < rows; ++row)
                for (Index i = t + row; i < n_; i += q) p_.loss.batch.data()[row * n_ + i] = 1.0;
            p_.loss.couple(rows, 0, k_.shares);
        }
    }

    // H -= P'P in the rows and columns of those that enter; P has K'a, and L'M below it.
    void subtract_pulled(Index known, Index size) {
        const Index height = k_.height, free = p_.free, more = size - known;
        for (Index c = known; c < size; ++c)
            for (Index q = 0; q < free; ++q) {
                double& below = at(k_.pulled, c * height + height - free + q);
                below = 0.0;
                for (Index p = q; p < free; ++p)
                    below += at(k_.inner, q * free + p) * at(k_.means, c * free + p);
            }
        if (height == 0) return;
        double* rows = k_.gram.get() + known * k_.stride;
        if (known == 0) {
            blas::add_gram(size, height, -1.0, k_.pulled.data(), height, 1.0, rows, k_.stride);
            for (Index r = 0; r < size; ++r)
                for (Index c = 0; c < r; ++c) rows[r * k_.stride + c] = rows[c * k_.stride + r];
            return;
        }
        std::vector<double> minus(k_.pulled.begin() + known * height, k_.pulled.end());
        for (double& number : minus) number = -number;
        blas::product(size, more, height, k_.pulled.data(), height, minus.data(), height, 1.0, rows,
                      k_.stride);
        for (Index r = known; r < size; ++r)
            for (Index c = 0; c < r; ++c)
                k_.gram[as_size(c * k_.stride + r)] = k_.gram[as_size(r * k_.stride + c)];
    }

    // (Q'DQ)^-1 Q'D a of those that enter.
    void project(Index known, Index size) {
        const Index free = p_.free;
        for (Index q = 0; q < free; ++q) {
            const double* own = p_.basis + q * n_;
            for (Index i = 0; i < n_; ++i) at(trial_, i) = at(k_.damped, i) * own[i];
            for (Index c = known; c < size; ++c)
                at(k_.means, c * free + q) =
                    p_.columns.score(k_.chosen[as_size(c)], trial_.data()) -
                    dot(pulled_basis(q), k_.pulled.data() + c * k_.height, width());
        }
        if (free > 0)
            blas::cholesky_solve(free, k_.inner.data(), free, k_.means.data() + known * free,
                                 size - known);
    }

    // Finds the end of a step over the chosen columns, and whether it is worth a search.
    void plan(Point& p) {
        const Index size = static_cast<Index>(k_.chosen.size()), free = p_.free;
        gradient_.resize(as_size(size));
        if (!p_.starts) price_.resize(as_size(size));
        p.start.resize(as_size(size));
        for (Index i = 0; i < size; ++i) {
            const Index j = k_.chosen[as_size(i)];
            at(p.start, i) = at(p.w, j);
            if (!p_.starts) at(price_, i) = p_.price[j];
            at(gradient_, spot(i)) =
                at(p.scores, j) - dot(k_.means.data() + i * free, p.surplus.data(), free);
        }
        if (p_.starts) find_cuts(size);
        if (k_.ridge != p.terms.ridge) k_.factored = 0;
        k_.ridge = p.terms.ridge;
        const double before = p.promised;
        p.end = p.start;
        p.promised = by_sweeps(p, size, false) ? promise(p, size) : kInfinity;
        // The last digits need an exact minimum.
        if (!(p.promised < -kAtRest * p.value)) {
            const bool found =
                p_.starts ? by_sweeps(p, size, true) : by_signs(p, size) || by_active_set(p, size);
            p.promised = found ? promise(p, size) : kInfinity;
        }
        settle(p, before);
    }

    // Decides whether the step is searched along, whether it is the last one, and whether the next
    // one needs a new Hessian. `before` is what the step before promised.
    void settle(Point& p, double before) {
        p.last = !(p.promised < -kAtRest * p.value);
        p.move.clear();
        if (p.last && !p.fresh) {
            refresh_ = &p;  // the last digits are those of the curvature here
        } else if ((p.promised == kInfinity || p.promised < -kAbsurd * p.value) &&
                   k_.damping < 1.0 && !is_quadratic()) {
            // A model without a minimum, or nearly: of more curvature it has one. The loss is >= 0.
            more_damping();
            refresh_ = &p;
        } else if (!(p.promised < (p.last ? kRounding * p.value : 0.0))) {
            p.done = true;
        } else {
            if (!p.fresh && before < 0.0 && p.promised < kContraction * before) refresh_ = &p;
            p.move.assign(as_size(n_), 0.0);
        }
    }

    // Whether sweeps over the samples of the columns in use, as many as the last level took, cost
    // less than their Hessian and its factor.
    bool prefers_samples(const double* w) const {
        if (!p_.columns.is_sparse() || p_.loss.couples() || p_.starts || p_.metric != nullptr ||
            !is_plain(p_.terms[0]))
            return false;
        double used = 0.0;
        for (Index j = 0; j < p_.count; ++j) used += w[j] != 0.0;
        return k_.sweeps * work_of_sweep(used) < k_.hessians * work_of_hessian(used);
    }
    double work_of_sweep(double size) const {
        return kScattered * p_.columns.entries() * size / static_cast<double>(p_.count);
    }
    double work_of_hessian(double size) const {
        return p_.columns.gram_work(size) + size * size * size / (3.0 * kBlasGain);
    }

    // What is kept for one mode is of no use to the other.
    void set_mode(bool samples) {
        if (samples != by_samples_) forget();
        by_samples_ = samples;
        swept_ = 0.0;
    }

    // The end of a step by coordinate descent on the slopes of all samples, without a Hessian: a
    // sweep reads the columns twice. After too many sweeps a Hessian makes the next step.
    void descend(Point& p) {
        const Index free = p_.free;
        forget();
        k_.curvature.resize(as_size(n_));
        p_.loss.curve(p.linear.data(), k_.curvature.data());
        damp();
        while (!has_curvature() && k_.damping < 1.0) {
            more_damping();
            damp();
        }
        p.fresh = true;
        p.move.clear();
        if (!has_curvature()) {
            set_mode(false);
            return;
        }
        // Those in use, and those whose slopes are nearer to the price than the worst one is.
        double largest = 0.0;
        for (Index k = 0; k < p_.count; ++k) largest = std::max(largest, pull(p, k));
        const double least = p.terms.level - std::max(largest - p.terms.level, 0.0);
        for (Index j = 0; j < p_.count; ++j)
            if (at(p.w, j) != 0.0 || pull(p, j) > least) k_.chosen.push_back(j);
        const Index size = static_cast<Index>(k_.chosen.size());
        crossed_.resize(as_size(size * free));
        for (Index q = 0; q < free; ++q) {
            for (Index i = 0; i < n_; ++i) at(trial_, i) = at(k_.damped, i) * p_.basis[q * n_ + i];
            for (Index c = 0; c < size; ++c)
                at(crossed_, c * free + q) = p_.columns.score(k_.chosen[as_size(c)], trial_.data());
        }
        k_.means = crossed_;
        if (free > 0) blas::cholesky_solve(free, k_.inner.data(), free, k_.means.data(), size);
        p.start.resize(as_size(size));
        price_.resize(as_size(size));
        squares_.resize(as_size(size));
        double off = 0.0;
        for (Index c = 0; c < size; ++c) {
            const Index j = k_.chosen[as_size(c)];
            at(p.start, c) = at(p.w, j);
            at(price_, c) = p_.price[j];
            const double whole = p_.columns.square(j, k_.damped.data());
            const double own =
                whole - dot(k_.means.data() + c * free, crossed_.data() + c * free, free);
            // Where the loss is straight along a column, some of its largest curvature.
            at(squares_, c) = own > kTiny * whole ? own : kFirstDamping * most_curved(j);
            off = std::max(off,
                           at(p.w, j) == 0.0 ? pull(p, j) / p.terms.level - 1.0 : slope_off(p, j));
        }
        const double before = p.promised;
        const double enough = std::max(limits_.gap, limits_.share * p.value);
        p.end = p.start;
        slope_ = p.slope;
        surplus_ = p.surplus;
        const double all = static_cast<double>(size);
        const double most = k_.hessians * work_of_hessian(all) / work_of_sweep(all);
        bool settled = sweep(p, std::max(kShareOff * off, 0.5 * enough / p.value), most);
        p.promised = promise(p, size);
        if (settled && !(p.promised < -kAtRest * p.value)) {
            settled = sweep(p, kExact, most);
            p.promised = promise(p, size);
        }
        settle(p, before);
        k_.sweeps = std::max(0.5 * k_.sweeps, swept_);
        turned_ = !settled;
        if (turned_) p.last = p.done = false;
    }

    // By which share of its price the slope of a column in use is off.
    double slope_off(const Point& p, Index j) const {
        const double price = p.terms.level * p_.price[j];
        return std::fabs(at(p.scores, j) + std::copysign(price, at(p.w, j))) / price;
    }

    // The largest curvature of the loss along column j, 0 where nothing bounds it.
    double most_curved(Index j) const {
        const double bound = p_.loss.smoothness;
        return std::isfinite(bound) ? bound * p_.columns.square(j, p_.loss.weight.data()) : 0.0;
    }

    // Sweeps until no slope is off by more than `least` of its price; between two sweeps, the
    // columns in use go to their minimum. False if that takes more than `most` sweeps at this
    // level, or too long.
    bool sweep(Point& p, double least, double most) {
        const Terms& t = p.terms;
        const Index size = static_cast<Index>(k_.chosen.size()), free = p_.free;
        do {
            double largest = 0.0;
            for (Index c = 0; c < size; ++c) {
                const Index j = k_.chosen[as_size(c)];
                double& end = at(p.end, c);
                const double h = at(squares_, c) + t.ridge, price = t.level * at(price_, c);
                if (!(h > 0.0)) continue;
                const double there = h * end - model_slope(p, c);
                double to = std::max(std::fabs(there) - price, 0.0) / h;
                if (there < 0.0) to = p_.is_signed ? -to : 0.0;
                const double change = to - end;
                if (change == 0.0) continue;
                p_.columns.shift(j, change, k_.damped.data(), slope_.data());
                for (Index q = 0; q < free; ++q)
                    at(surplus_, q) += change * at(crossed_, c * free + q);
                end = to;
                largest = std::max(largest, std::fabs(change) * h / price);
            }
            swept_ += 1.0;
            if (largest <= least) return true;
            solve_for_used(p, least, most);
        } while (may_sweep(most));
        return false;
    }

    bool may_sweep(double most) const { return swept_ <= most && spent() < limits_.seconds; }

    // The slope of the model and its ridge along chosen column c.
    double model_slope(const Point& p, Index c) const {
        const Index free = p_.free;
        double g =
            p_.columns.score(k_.chosen[as_size(c)], slope_.data()) + p.terms.ridge * at(p.end, c);
        for (Index q = 0; q < free; ++q) g -= at(k_.means, c * free + q) * at(surplus_, q);
        return g;
    }

    // The columns in use, and their system of equations at the signs that they have. `moved` is
    // what `change` does to the slopes over the samples.
    struct InUse {
        std::vector<Index> places, columns;  // among the chosen ones; among all
        std::vector<double> start, slopes, squares, prices, change, moved;
    };

    // Moves the columns in use towards their minimum at the signs that they have. A column whose
    // sign would change ends at 0. A step that raises the model is not made.
    void solve_for_used(Point& p, double least, double most) {
        const Terms& t = p.terms;
        InUse u;
        for (Index c = 0; c < static_cast<Index>(k_.chosen.size()); ++c) {
            const double end = at(p.end, c), square = at(squares_, c) + t.ridge;
            if (end == 0.0 || !(square > 0.0)) continue;
            const double price = t.level * at(price_, c);
            u.places.push_back(c);
            u.columns.push_back(k_.chosen[as_size(c)]);
            u.start.push_back(end);
            u.squares.push_back(square);
            u.prices.push_back(price);
            u.slopes.push_back(model_slope(p, c) + std::copysign(price, end));
        }
        const Index count = static_cast<Index>(u.places.size());
        conjugate_gradients(u, t.ridge, kShareLeft * least, most);
        double lower = 0.0, bend = 0.0;
        for (Index i = 0; i < count; ++i) {
            const double end = at(p.end, u.places[as_size(i)]), to = end + at(u.change, i);
            if (!(to * end > 0.0)) {
                p_.columns.shift(u.columns[as_size(i)], -to, k_.damped.data(), u.moved.data());
                at(u.change, i) = -end;
            }
            lower -= at(u.slopes, i) * at(u.change, i);
            bend += t.ridge * at(u.change, i) * at(u.change, i);
        }
        take_off_free(u.moved);
        for (Index i = 0; i < n_; ++i)
            if (at(k_.damped, i) > 0.0) bend += at(u.moved, i) * at(u.moved, i) / at(k_.damped, i);
        if (!(lower > 0.5 * bend)) return;
        for (Index i = 0; i < count; ++i) at(p.end, u.places[as_size(i)]) += at(u.change, i);
        add_multiple(slope_.data(), 1.0, u.moved.data(), n_);
    }

    // Solves for the change that makes the slopes 0, to `least` of the prices and in as much as
    // `most` sweeps, with each column scaled by its square; less far where signs would change.
    void conjugate_gradients(InUse& u, double ridge, double least, double most) {
        const Index count = static_cast<Index>(u.places.size());
        u.change.assign(as_size(count), 0.0);
        u.moved.assign(as_size(n_), 0.0);
        std::vector<double> left(u.slopes), way(as_size(count)), turn(way), moved(as_size(n_));
        double rest = 0.0, before = kInfinity;
        for (Index turns = 0; turns < count && may_sweep(most); ++turns) {
            double off = 0.0;
            rest = 0.0;
            for (Index i = 0; i < count; ++i) {
                off = std::max(off, std::fabs(at(left, i)) / at(u.prices, i));
                rest += at(left, i) * at(left, i) / at(u.squares, i);
            }
            if (off <= least) return;
            for (Index i = 0; i < count; ++i)
                at(way, i) = rest / before * at(way, i) - at(left, i) / at(u.squares, i);
            std::fill(moved.begin(), moved.end(), 0.0);
            double* to = moved.data();
            p_.columns.add(u.columns, way.data(), 1, &to);
            for (Index i = 0; i < n_; ++i) at(moved, i) *= at(k_.damped, i);
            take_off_free(moved);
            double bend = 0.0;
            for (Index i = 0; i < count; ++i) {
                const Index j = u.columns[as_size(i)];
                at(turn, i) = p_.columns.score(j, moved.data()) + ridge * at(way, i);
                bend += at(turn, i) * at(way, i);
            }
            swept_ += static_cast<double>(count) / static_cast<double>(k_.chosen.size());
            if (!(bend > 0.0)) return;
            const double length = rest / bend;
            add_multiple(u.change.data(), length, way.data(), count);
            add_multiple(u.moved.data(), length, moved.data(), n_);
            bool changed = false;
            for (Index i = 0; i < count; ++i)
                changed = changed || !(at(u.start, i) * (at(u.start, i) + at(u.change, i)) > 0.0);
            if (changed && turns >= kSureTurns) return;
            add_multiple(left.data(), length, turn.data(), count);
            before = rest;
        }
    }

    // y -= D Q (Q'DQ)^-1 Q'y.
    void take_off_free(std::vector<double>& y) {
        std::vector<double> shares(as_size(p_.free));
        for (Index q = 0; q < p_.free; ++q) at(shares, q) = dot(p_.basis + q * n_, y.data(), n_);
        if (p_.free > 0) blas::cholesky_solve(p_.free, k_.inner.data(), p_.free, shares.data());
        for (Index q = 0; q < p_.free; ++q)
            for (Index i = 0; i < n_; ++i)
                at(y, i) -= at(k_.damped, i) * p_.basis[q * n_ + i] * at(shares, q);
    }

    static bool is_plain(const Terms& t) {
        return t.level > 0.0 && t.coupling == 0.0 && t.radius == kInfinity;
    }

    // Where the groups of the chosen columns begin, and their prices.
    void find_cuts(Index size) {
        cuts_.clear();
        price_.clear();
        for (Index i = 0; i < size; i += members(of_[as_size(k_.chosen[as_size(i)])])) {
            cuts_.push_back(i);
            price_.push_back(p_.price[of_[as_size(k_.chosen[as_size(i)])]]);
        }
        cuts_.push_back(size);
        for (std::size_t k = k_.axes.size(); k < price_.size(); ++k) {
            const Index from = cuts_[k], m = (cuts_[k + 1] - from) / k_.tasks;
            std::vector<double> corner(as_size(m * (m + 1)));
            for (Index a = 0; a < m; ++a)
                std::copy_n(row(from + a * k_.tasks) + from / k_.tasks, m, corner.data() + a * m);
            blas::eigenvectors(m, corner.data(), corner.data() + m * m);
            k_.axes.push_back(std::move(corner));
        }
    }

    // The row of H of column i, or of its feature.
    const double* row(Index i) const { return k_.gram.get() + i / k_.tasks * k_.stride; }
    // Where a vector over the columns has number i: one task after the other.
    Index spot(Index i) const {
        return i % k_.tasks * (static_cast<Index>(gradient_.size()) / k_.tasks) + i / k_.tasks;
    }
    // y += factor H e_i, one task after the other.
    void add_column(std::vector<double>& y, Index i, double factor) const {
        const Index count = static_cast<Index>(y.size()) / k_.tasks;
        if (factor != 0.0) add_multiple(y.data() + i % k_.tasks * count, factor, row(i), count);
    }

    // Group after group, each to its minimum, to the size of the gap or `exactly`. Where that takes
    // the work of a factor, Newton steps over those in use follow; false where columns are alone.
    bool by_sweeps(Point& p, Index size, bool exactly) {
        if (p_.starts ? p.terms.radius < kInfinity : !is_plain(p.terms)) return false;
        const double enough = std::max(limits_.gap, limits_.share * p.value);
        if (!exactly && !(enough > 0.0)) return false;
        // A slope beyond its price by such a share adds as much of the objective to the gap. Less
        // than the gap at hand, so that the step makes progress.
        const double least = exactly ? kExact : std::max(0.3 * p.gap, 0.5 * enough) / p.value;
        const Index groups = static_cast<Index>(price_.size());
        const double all = static_cast<double>(size), tasks = static_cast<double>(k_.tasks);
        double work = 0.0;
        bool whole = true;
        for (int rounds = 0; rounds < kMostRounds && spent() < limits_.seconds;) {
            double largest = 0.0, used = 0.0;
            gauge_ = p_.starts ? chosen_gauge(p.end) : 0.0;
            for (Index k = 0; k < groups; ++k) {
                if (!whole && chosen_length(p.end, k) == 0.0) continue;
                largest =
                    std::max(largest, p_.starts ? minimize_block(p, k) : minimize_column(p, k));
                used += chosen_length(p.end, k) > 0.0 ? static_cast<double>(width_of(k)) : 0.0;
            }
            work_of_model_ = work += (used + 1.0) * all / tasks;
            if (whole && largest <= least) return true;
            whole = largest <= least;
            // Of columns alone the factor at hand counts, which needs a few solutions only.
            const double kept = std::min(static_cast<double>(k_.factored), used);
            const double factor = p_.starts
                                      ? used * used * (used / 3.0 + all) / std::pow(tasks, 3.0)
                                      : (used * used * used - kept * kept * kept) / 3.0 +
                                            kSolutions * kBlasGain * (used + 1.0) * all;
            if (work * kBlasGain < factor) continue;
            if (!p_.starts) return false;
            ++rounds;
            work = 0.0;
            newton_over_blocks(p, size);
        }
        return true;  // as near as rounding allows
    }

    Index width_of(Index k) const {
        return p_.starts ? cuts_[as_size(k + 1)] - cuts_[as_size(k)] : 1;
    }
    double chosen_length(const std::vector<double>& v, Index k) const {
        if (!p_.starts) return std::fabs(at(v, k));
        const double* own = v.data() + cuts_[as_size(k)];
        return std::sqrt(dot(own, own, width_of(k)));
    }

    double chosen_gauge(const std::vector<double>& v) const {
        double total = 0.0;
        for (std::size_t k = 0; k < price_.size(); ++k)
            total += price_[k] * chosen_length(v, static_cast<Index>(k));
        return total;
    }

    // The same for one column, where the norm is a sum of prices.
    double minimize_column(Point& p, Index i) {
        const double h = row(i)[i] + diagonal(p.terms);
        const double z = at(p.end, i) * h - at(gradient_, i);
        const double price = p.terms.level * at(price_, i);
        const double low = p_.is_signed ? -price : -kInfinity;
        const double to = z > price ? z - price : z < low ? z + price : 0.0;
        const double change = h > 0.0 ? to / h - at(p.end, i) : 0.0;
        if (change == 0.0) return 0.0;
        at(p.end, i) = to / h;
        add_column(gradient_, i, change);
        at(gradient_, i) += diagonal(p.terms) * change;
        return std::fabs(change) * h / price;
    }

    // argmin over one group, of 1/2 u'(H + ridge I)u - z'u + price ||u||; returns how far its slope
    // was from that, as a share of the price. In the axes of H the length s solves the sum of
    // z^2 / (h s + price)^2 = 1: Newton's method on the root's inverse, nearly a line in s. Where
    // the gauge g counts squared, the price is that next to the others, and more of a ridge.
    double minimize_block(Point& p, Index k) {
        const Index from = cuts_[as_size(k)], m = width_of(k), q = k_.tasks, f = m / q;
        const double* axes = k_.axes[as_size(k)].data();
        const double own_price = at(price_, k), coupling = p.terms.coupling;
        const double ridge = diagonal(p.terms), more = coupling * own_price * own_price;
        double s = chosen_length(p.end, k), square = 0.0, alone = 0.0, most = 0.0;
        const double rest = std::max(gauge_ - own_price * s, 0.0);
        const double price = own_price * (p.terms.level + coupling * rest);
        const Index all = static_cast<Index>(p.end.size()) / q;
        double *u = p.end.data() + from, *slope = gradient_.data() + from / q;
        z_.assign(as_size(3 * m + 2 * f), 0.0);
        double *z = z_.data(), *old = z + m, *now = old + m, *h = now + m, *squares = h + f;
        for (Index a = 0; a < f; ++a) {
            const double* axis = axes + a * f;
            h[a] = std::max(axes[f * f + a] + ridge, 0.0);
            for (Index t = 0, i = a; t < q; ++t, i += f) {
                for (Index b = 0; b < f; ++b) old[i] += axis[b] * u[b * q + t];
                z[i] = h[a] * old[i] - dot(axis, slope + t * all, f);
                squares[a] += z[i] * z[i];
            }
            h[a] += more;
            square += squares[a];
            if (price == 0.0) alone = std::hypot(alone, std::sqrt(squares[a]) / h[a]);
        }
        gauge_ = rest;
        const bool in = std::sqrt(square) > price;
        if (!in && s == 0.0) return 0.0;
        if (price == 0.0) s = alone;
        for (int step = 0; in && price > 0.0 && step < kHalvings; ++step) {
            double sum = 0.0, bend = 0.0;
            for (Index a = 0; a < f; ++a) {
                const double d = 1.0 / (h[a] * s + price), part = squares[a] * d * d;
                sum += part;
                bend += part * h[a] * d;
            }
            const double root = std::sqrt(sum);
            if (!(bend > 0.0)) return 0.0;  // no curvature: the other groups decide
            const double next = std::max(s + (root - 1.0) * sum / bend, 0.0);
            const bool still = std::fabs(next - s) <= 1e-14 * next;
            s = next;
            if (still) break;
        }
        for (Index t = 0; t < q; ++t) {
            double *ours = now + t * f, *change = old + t * f;
            for (Index a = 0; a < f; ++a) {
                ours[a] = in ? z[t * f + a] * s / (h[a] * s + price) : 0.0;
                change[a] = ours[a] - change[a];
                most = std::max(most, std::fabs(change[a]) * h[a]);
            }
            for (Index b = 0; b < f; ++b) {
                double to = 0.0, by = 0.0;
                for (Index a = 0; a < f; ++a) {
                    to += axes[a * f + b] * ours[a];
                    by += axes[a * f + b] * change[a];
                }
                u[b * q + t] = to;
                add_column(gradient_, from + b * q + t, by);
                slope[t * all + b] += ridge * by;
            }
        }
        if (in) gauge_ += own_price * s;
        return most / (own_price * (p.terms.level + coupling * gauge_));
    }

    // The columns in use, one task after the other, and their groups among those in use; the slopes
    // of the norm, its Hessian diag(curve) - V V', where V has a column for each group, and the way
    // of a Newton step, at first its right side.
    struct Used {
        std::vector<Index> in, of;
        std::vector<double> slope, curve, v, way;
        Index groups = 0;
    };

    bool solve_whole(Used& u, double ridge, double squared) const {
        const Index n = static_cast<Index>(u.in.size());
        std::vector<double> matrix(as_size(n * n));
        for (Index c = 0; c < n; ++c)
            for (Index r = c; r < n; ++r) {
                double entry = row(u.in[as_size(c)])[u.in[as_size(r)]];
                if (u.of[as_size(r)] == u.of[as_size(c)]) entry -= at(u.v, c) * at(u.v, r);
                if (r == c) entry += ridge + at(u.curve, c);
                entry += squared * at(u.slope, c) * at(u.slope, r);
                at(matrix, c * n + r) = entry;
            }
        if (!blas::cholesky(n, matrix.data(), n)) return false;
        blas::cholesky_solve(n, matrix.data(), n, u.way.data());
        return true;
    }

    // The same for one H of all tasks, by Woodbury: without V V' the system has one factor B too.
    bool solve_by_tasks(Used& u, double ridge) const {
        const Index q = k_.tasks, n = static_cast<Index>(u.in.size()), r = n / q, groups = u.groups;
        std::vector<double> B(as_size(r * r)), outer(B), inner(as_size(groups * groups)),
            y(as_size(groups));
        for (Index c = 0; c < r; ++c) {
            for (Index e = c; e < r; ++e)
                at(B, c * r + e) = row(u.in[as_size(c)])[u.in[as_size(e)] / q];
            at(B, c * r + c) += ridge + at(u.curve, c);
        }
        if (!blas::cholesky(r, B.data(), r)) return false;
        blas::cholesky_solve(r, B.data(), r, u.way.data(), q);
        std::vector<double> inverse(B);
        blas::cholesky_inverse(r, inverse.data(), r);
        blas::add_outer(r, q, 1.0, u.v.data(), r, 0.0, outer.data(), r);
        for (Index k = 0; k < groups; ++k) at(inner, k * groups + k) = 1.0;
        for (Index c = 0; c < r; ++c)
            for (Index e = c; e < r; ++e) {
                const Index left = u.of[as_size(c)], low = u.of[as_size(e)];
                const double entry = at(inverse, c * r + e) * at(outer, c * r + e);
                at(inner, left * groups + low) -= left == low && c != e ? 2.0 * entry : entry;
            }
        for (Index i = 0; i < n; ++i) at(y, u.of[as_size(i)]) += at(u.v, i) * at(u.way, i);
        if (!blas::cholesky(groups, inner.data(), groups)) return false;
        blas::cholesky_solve(groups, inner.data(), groups, y.data());
        for (Index i = 0; i < n; ++i) at(u.v, i) *= at(y, u.of[as_size(i)]);
        blas::cholesky_solve(r, B.data(), r, u.v.data(), q);
        add_multiple(u.way.data(), 1.0, u.v.data(), n);
        return true;
    }

    // A Newton step over the groups in use, shortened until the model descends.
    void newton_over_blocks(Point& p, Index size) {
        Used u;
        const Index q = k_.tasks;
        const double ridge = diagonal(p.terms), gauge = chosen_gauge(p.end);
        const double level = p.terms.level + p.terms.coupling * gauge;
        for (Index t = 0; t < q; ++t) {
            u.groups = 0;
            for (Index k = 0; k < static_cast<Index>(price_.size()); ++k) {
                const double s = chosen_length(p.end, k), price = level * at(price_, k);
                for (Index i = cuts_[as_size(k)] + t; s > 0.0 && i < cuts_[as_size(k + 1)];
                     i += q) {
                    const double slope = price * at(p.end, i) / s;
                    u.in.push_back(i);
                    u.of.push_back(u.groups);
                    u.slope.push_back(slope);
                    u.curve.push_back(price / s);
                    u.v.push_back(slope / std::sqrt(price * s));
                    u.way.push_back(-at(gradient_, spot(i)) - slope);
                }
                u.groups += s > 0.0;
            }
        }
        const double squared = p.terms.coupling / (level * level);
        if (!(q > 1 ? solve_by_tasks(u, ridge) : solve_whole(u, ridge, squared))) return;
        const Index n = static_cast<Index>(u.in.size());
        const auto& in = u.in;
        const auto& way = u.way;
        std::vector<double> turn(as_size(size));
        double slope = 0.0, bend = 0.0;
        for (Index c = 0; c < n; ++c) {
            const Index i = in[as_size(c)];
            add_column(turn, i, at(way, c));
            at(turn, spot(i)) += ridge * at(way, c);
            slope += at(gradient_, spot(i)) * at(way, c);
        }
        for (Index c = 0; c < n; ++c) bend += at(turn, spot(in[as_size(c)])) * at(way, c);
        std::vector<double> there;
        double length = 1.0;
        for (int trial = 0; trial < kFewTrials; ++trial, length *= 0.5) {
            there = p.end;
            for (Index c = 0; c < n; ++c) at(there, in[as_size(c)]) += length * at(way, c);
            const double longer = chosen_gauge(there) - gauge;
            const double change = length * (slope + 0.5 * length * bend) +
                                  (level + 0.5 * p.terms.coupling * longer) * longer;
            if (!(change < 0.0)) continue;
            p.end.swap(there);
            add_multiple(gradient_.data(), length, turn.data(), size);
            return;
        }
    }

    // All exchanges of signs at once, where the norm is a sum of prices.
    bool by_signs(Point& p, Index size) {
        const Terms& t = p.terms;
        if (!is_plain(t)) return false;
        found_.resize(as_size(size));
        Index live = 0;
        for (const double d : k_.damped) live += d > 0.0;
        const Index most = t.ridge > 0.0 ? size : std::min(size, live - p_.free);
        const SignedQuadratic quadratic{k_.gram.get(),
                                        k_.stride,
                                        size,
                                        gradient_.data(),
                                        price_.data(),
                                        diagonal(t),
                                        std::max<Index>(most, 1),
                                        p_.is_signed};
        SupportFactor state{k_.factor.get(), k_.stride, k_.order.data(), k_.factored};
        const bool solved =
            pivot_path(quadratic, &t.level, 1, state, p.end.data(), found_.data()) == 1;
        if (solved) p.end = found_;
        k_.factored = state.count;
        return solved;
    }

    bool by_active_set(Point& p, Index size) {
        const Terms& t = p.terms;
        k_.factored = 0;
        const QuadraticProgram program{k_.gram.get(), k_.stride,     size,       gradient_.data(),
                                       true,          price_.data(), t.coupling, diagonal(t),
                                       t.radius,      false,         t.level,    p_.is_signed};
        ActiveFactor state{k_.factor.get(), k_.stride, k_.order.data(), 0, 0, 0.0};
        const QPOutcome outcome = active_set(program, state, p.end.data(), kEntering, kMostPivots);
        return outcome.status != QPStatus::not_finite && outcome.status != QPStatus::bad_state;
    }

    // The decrease that the slopes at the beginning of a step promise.
    double promise(Point& p, Index size) const {
        const Index free = p_.free;
        const Terms& t = p.terms;
        p.turn = p.surplus;
        if (free > 0) blas::cholesky_solve(free, k_.inner.data(), free, p.turn.data());
        for (double& turn : p.turn) turn = -turn;
        double along = 0.0, longer = 0.0, g = 0.0;
        for (Index i = 0; i < size; ++i) {
            const double change = at(p.end, i) - at(p.start, i);
            for (Index q = 0; q < free; ++q) at(p.turn, q) -= at(k_.means, i * free + q) * change;
            along += at(p.scores, k_.chosen[as_size(i)]) * change;
        }
        for (Index k = 0; k < static_cast<Index>(price_.size()); ++k) {
            const double start = chosen_length(p.start, k);
            longer += at(price_, k) * (chosen_length(p.end, k) - start);
            g += at(price_, k) * start;
        }
        along += dot(p.turn.data(), p.surplus.data(), free);
        return along + (t.level + t.coupling * (g + 0.5 * longer)) * longer;
    }

    // The changes of the predictions of all levels, in one reading of the columns.
    void move_all() {
        const Index size = static_cast<Index>(k_.chosen.size());
        std::vector<double*> moves;
        std::vector<double> changes;
        for (auto& p : points_) {
            if (p->move.empty()) continue;
            for (Index i = 0; i < size; ++i) changes.push_back(at(p->end, i) - at(p->start, i));
            for (Index q = 0; q < p_.free; ++q)
                add_multiple(p->move.data(), at(p->turn, q), p_.basis + q * n_, n_);
            moves.push_back(p->move.data());
        }
        const Index count = static_cast<Index>(moves.size());
        if (count > 0) p_.columns.add(k_.chosen, changes.data(), count, moves.data());
    }

    // Goes as far as the objective allows, and draws from it what comes next.
    void advance(Point& p) {
        if (p.move.empty()) return;
        const double before = p.value;
        const double length = search(p);
        steps_ += length > 0.0;
        p.steps += 1;
        p.idle = p.value < before * (1.0 - kAtRest) ? 0 : p.idle + 1;
        const bool stuck = length == 0.0 && p.fresh && k_.damping >= 1.0;
        p.done = p.last || stuck || p.idle >= kPatience || p.steps >= limits_.steps;
        if (length < 1.0 || k_.damping > 0.0) refresh_ = &p;
        alone_ = alone_ || (length < 0.25 && !p.fresh);
        if (length < 0.25 && p.fresh)
            more_damping();
        else if (length == 1.0 && p.fresh)
            k_.damping = k_.damping > kTiny ? 0.1 * k_.damping : 0.0;
    }

    // Armijo's rule; returns the length of the step, 0 where there is none. At the end of the whole
    // way zeros are exact zeros.
    double search(Point& p) {
        const Index size = static_cast<Index>(k_.chosen.size());
        double length = 1.0;
        for (int halving = 0; halving < kHalvings; ++halving, length *= 0.5) {
            reached_.assign(as_size(p_.count), 0.0);
            for (Index i = 0; i < size; ++i) {
                if (halving > 0) at(p.end, i) = 0.5 * (at(p.end, i) + at(p.start, i));
                at(reached_, k_.chosen[as_size(i)]) = at(p.end, i);
            }
            for (Index i = 0; i < n_; ++i) at(trial_, i) = at(p.linear, i) + length * at(p.move, i);
            const double now = p_.loss.value(trial_.data()) + penalty(p.terms, reached_.data());
            if (!(now <= p.value + kArmijo * length * p.promised + 1e-14 * std::fabs(p.value)))
                continue;
            if (!(now < p.value) && halving > 0) return 0.0;
            p.w.swap(reached_);
            for (Index q = 0; q < p_.free; ++q) at(p.b, q) += length * at(p.turn, q);
            p.linear.swap(trial_);
            p.value = now;
            // Now, as a loss may keep what it knows of its last point only.
            p_.loss.differentiate(p.linear.data(), p.slope.data());
            p.sloped = true;
            return length;
        }
        return 0.0;
    }

    void more_damping() {
        k_.damping = k_.damping > 0.0 ? std::min(1.0, 10.0 * k_.damping) : kFirstDamping;
    }

    static double& at(std::vector<double>& v, Index i) { return v[as_size(i)]; }
    static double at(const std::vector<double>& v, Index i) { return v[as_size(i)]; }

    // In `place_`: listed already among those that enter.
    static constexpr Index kListed = -2;
    // Steps of a level that a new Hessian would not save.
    static constexpr Index kFreeSteps = 2;

    const PricedProblem& p_;
    Index n_;
    double* weights_;
    double* shifts_;
    const NewtonLimits& limits_;
    const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    std::vector<double> trial_;
    KeptHessian& k_;
    // Where a column is among those of the model, and its quadratic program.
    std::vector<Index> place_, entering_;
    std::vector<double> gradient_, price_, found_, reached_, scores_, z_;
    // The group of each column, and where groups begin among the chosen columns.
    std::vector<Index> of_, cuts_;
    std::vector<std::shared_ptr<Point>> points_;
    std::shared_ptr<Point> newest_, last_, earlier_;
    const Point* refresh_ = nullptr;
    Index steps_ = 0;
    double work_of_model_ = 0.0;  // of the last one, by coordinates
    double made_ = 0.0;           // Hessians since a level ended
    // Whether each step makes a Hessian of its own, as one with an older Hessian was cut short.
    bool alone_ = false;
    // Whether steps are made over the samples; sweeps of this level; whether they were too many.
    bool by_samples_ = false, turned_ = false;
    double swept_ = 0.0;
    std::vector<double> crossed_, squares_, slope_, surplus_;
    double gauge_ = 0.0;  // of the end of a step over groups
};

// What Python holds of a Hessian; ``taken`` while a call works on it.
struct HeldHessian {
    KeptHessian hessian;
    std::atomic_flag taken;
};

// A Hessian for one call: the held one, or a new one where another thread works on that.
class Lent {
  public:
    explicit Lent(HeldHessian& held) : held_(held), mine_(!held.taken.test_and_set()) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
        if (mine_) held_.taken.clear();
    }
    KeptHessian& get() { return mine_ ? held_.hessian : new_; }

  private:
    HeldHessian& held_;
    KeptHessian new_;
    bool mine_;
};

// price, terms (a row a level), basis (a row a free column), metric, is_signed; starts, members of
// groups, empty where each column is one
using Prices = std::tuple<Doubles, Rows, Rows, Doubles, bool, Positions, Positions>;
// gap, share, steps, seconds
using Ends = std::tuple<double, double, Index, double>;

// weights, shifts: rows of the levels, in the first the start. Returns the numbers of levels that
// have begun and of steps.
std::tuple<Index, Index> run(const FewColumns& columns, const PythonLoss& loss,
                             const Prices& prices, const Ends& ends, HeldHessian& kept,
                             const OutDoubleMatrix& weights, const OutDoubleMatrix& shifts) {
    const auto& [price, terms, basis, metric, is_signed, starts, members] = prices;
    const Index levels = size_of(terms), cuts = size_of(starts);
    expect(size_of(price) == (cuts ? cuts - 1 : size_of(weights, 1)) &&
               (cuts == 0 || size_of(members) == size_of(weights, 1)),
           "weights and price must have an entry a column, or a group");
    expect_within(members, size_of(weights, 1));
    expect(size_of(terms, 1) == 4 && size_of(weights) == levels && size_of(shifts) == levels &&
               size_of(basis) == size_of(shifts, 1) &&
               (size_of(basis) == 0 || size_of(basis, 1) == loss.count()),
           "levels, weights, shifts and free columns do not fit together");
    static_assert(sizeof(Terms) == 4 * sizeof(double));
    const PricedProblem problem{columns,
                                size_of(weights, 1),
                                loss,
                                size_of(metric) ? metric.data() : nullptr,
                                price.data(),
                                reinterpret_cast<const Terms*>(terms.data()),
                                levels,
                                basis.data(),
                                size_of(basis),
                                is_signed,
                                cuts ? starts.data() : nullptr,
                                members.data(),
                                size_of(price)};
    Lent hessian(kept);
    const auto& [gap, share, steps, seconds] = ends;
    const NewtonLimits limits{gap, share, steps, seconds};
    Index made = 0;
    const Index begun =
        Fit(problem, weights.data(), shifts.data(), limits, hessian.get()).run(made);
    return {begun, made};
}

std::tuple<Index, Index> newton_qp_dense(const DoubleMatrix& columns, const PythonLoss& loss,
                                         const Prices& prices, const Ends& ends, HeldHessian& kept,
                                         const OutDoubleMatrix& weights,
                                         const OutDoubleMatrix& shifts) {
    expect(size_of(columns) == loss.count() && size_of(columns, 1) == size_of(weights, 1),
           "columns, target and weights do not fit together");
    const auto few = dense_columns(columns.data(), size_of(columns), size_of(columns, 1));
    return run(*few, loss, prices, ends, kept, weights, shifts);
}

std::tuple<Index, Index> newton_qp_csc(const std::tuple<Doubles, Vector, Vector>& columns,
                                       const PythonLoss& loss, const Prices& prices,
                                       const Ends& ends, HeldHessian& kept,
                                       const OutDoubleMatrix& weights,
                                       const OutDoubleMatrix& shifts) {
    const auto& [data, indices, indptr] = columns;
    return by_index(indices, [&](const auto* rows) {
        using Row = std::remove_const_t<std::remove_pointer_t<decltype(rows)>>;
        const auto few =
            compressed_columns<Row>(data.data(), rows, static_cast<const Row*>(indptr.data()),
                                    loss.count(), size_of(weights, 1));
        return run(*few, loss, prices, ends, kept, weights, shifts);
    });
}

// columns: features (a row each), the row and the task of each column, and how many tasks there are
std::tuple<Index, Index> newton_qp_tasks(
    const std::tuple<Rows, Positions, Positions, Index>& columns, const PythonLoss& loss,
    const Prices& prices, const Ends& ends, HeldHessian& kept, const OutDoubleMatrix& weights,
    const OutDoubleMatrix& shifts) {
    const auto& [features, places, tasks, n_tasks] = columns;
    expect(size_of(features, 1) * n_tasks == loss.count() &&
               size_of(places) == size_of(weights, 1) && size_of(tasks) == size_of(places),
           "columns, target and weights do not fit together");
    expect_within(places, size_of(features));
    expect_within(tasks, n_tasks);
    const auto few = task_columns({features.data(), size_of(features), size_of(features, 1),
                                   places.data(), tasks.data(), n_tasks, size_of(places)});
    return run(*few, loss, prices, ends, kept, weights, shifts);
}

}  // namespace

void bind_newton(nb::module_& m) {
    nb::class_<HeldHessian>(m, "KeptHessian").def(nb::init<>());
    nb::class_<PythonLoss>(m, "PythonLoss")
        .def(nb::init<nb::callable, nb::callable, nb::callable, nb::callable, nb::callable,
                      OutDoubles, OutDoubles, OutDoubles, OutDoubleMatrix, Doubles, double, bool,
                      Index>());
    define(m, "newton_qp", &newton_qp_dense);
    define(m, "newton_qp_csc", &newton_qp_csc);
    define(m, "newton_qp_tasks", &newton_qp_tasks);
}

}  // namespace atomlearn
