// Principal pivoting with whole blocks [Portugal, Judice, Vicente 1994]: solve on the guess,
// exchange all unknowns that violate a condition, repeat. Where that cycles, the active-set method.
#include "nonnegative.hpp"

#include <cmath>

#include "active_set.hpp"
#include "blas.hpp"

namespace atomlearn {
namespace {

// Exchanges of the whole set of unknowns before the slower method that cannot cycle.
constexpr int kMostExchanges = 12;
constexpr int kPatience = 3;

bool by_active_set(const std::vector<double>& matrix, const std::vector<double>& b,
                   std::vector<double>& x) {
    const Index n = static_cast<Index>(b.size());
    const QuadraticProgram program{matrix.data(), n,   n,   b.data(),  false,
                                   nullptr,       0.0, 0.0, kInfinity, false};
    std::vector<double> factor(b.size() * b.size());
    std::vector<Index> order(b.size());
    ActiveFactor state{factor.data(), n, order.data(), 0, 0, 0.0};
    std::fill(x.begin(), x.end(), 0.0);
    const QPOutcome outcome = active_set(program, state, x.data(), 1, 20 * n + 100);
    return outcome.status == QPStatus::optimal || outcome.status == QPStatus::inexact;
}

// Solves on the unknowns inside; false where the factor does not exist.
bool solve_on(const std::vector<double>& matrix, const std::vector<double>& b,
              const std::vector<Index>& used, std::vector<double>& factor,
              std::vector<double>& part) {
    const Index n = static_cast<Index>(b.size());
    const Index k = static_cast<Index>(used.size());
    part.resize(used.size());
    for (Index c = 0; c < k; ++c) {
        const double* column = matrix.data() + used[as_size(c)] * n;
        for (Index r = c; r < k; ++r) factor[as_size(r + c * k)] = column[used[as_size(r)]];
        part[as_size(c)] = b[as_size(used[as_size(c)])];
    }
    if (!blas::cholesky(k, factor.data(), k)) return false;
    blas::cholesky_solve(k, factor.data(), k, part.data());
    return true;
}

}  // namespace

bool nonnegative_minimum(std::vector<double>& matrix, std::vector<double>& b,
                         const std::vector<char>& positive, std::vector<double>& x) {
    const Index n = static_cast<Index>(b.size());
    // Unknowns of the same size: conditions are compared with each other.
    std::vector<double> scale(b.size()), slack(b.size()), factor(b.size() * b.size()), part;
    double largest = 0.0;
    for (Index j = 0; j < n; ++j) {
        scale[as_size(j)] = 1.0 / std::sqrt(matrix[as_size(j + j * n)]);
        if (!std::isfinite(scale[as_size(j)])) return false;
        b[as_size(j)] *= scale[as_size(j)];
        largest = std::max(largest, std::fabs(b[as_size(j)]));
    }
    for (Index c = 0; c < n; ++c)
        for (Index r = 0; r < n; ++r)
            matrix[as_size(r + c * n)] *= scale[as_size(r)] * scale[as_size(c)];
    std::vector<char> inside(b.size());
    for (std::size_t j = 0; j < b.size(); ++j) inside[j] = positive[j] || b[j] > 0.0;
    std::vector<Index> used;
    Index fewest = n + 1;
    int patience = kPatience;
    bool found = false;
    for (int round = 0; round < kMostExchanges && !found; ++round) {
        used.clear();
        for (Index j = 0; j < n; ++j)
            if (inside[as_size(j)]) used.push_back(j);
        if (!solve_on(matrix, b, used, factor, part)) return false;
        std::fill(x.begin(), x.end(), 0.0);
        for (std::size_t j = 0; j < b.size(); ++j) slack[j] = -b[j];
        for (std::size_t c = 0; c < used.size(); ++c) {
            x[as_size(used[c])] = part[c];
            const double* column = matrix.data() + used[c] * n;
            for (Index r = 0; r < n; ++r) slack[as_size(r)] += part[c] * column[r];
        }
        Index wrong = 0;
        for (std::size_t j = 0; j < b.size(); ++j) {
            const bool bad = inside[j] ? x[j] < 0.0 : slack[j] < -1e-12 * largest;
            slack[j] = bad;
            wrong += bad;
        }
        if (wrong == 0) {
            found = true;
        } else if (wrong < fewest) {
            fewest = wrong;
            patience = kPatience;
        } else if (patience-- == 0) {
            break;
        }
        for (std::size_t j = 0; j < b.size(); ++j) inside[j] ^= slack[j] != 0.0;
    }
    if (!found && !by_active_set(matrix, b, x)) return false;
    for (std::size_t j = 0; j < b.size(); ++j) {
        x[j] *= scale[j];
        if (!std::isfinite(x[j])) return false;
    }
    return true;
}

}  // namespace atomlearn
