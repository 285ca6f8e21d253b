// The ridge regressions behind scalings of groups, in feature space and in sample space.
#pragma once

#include <memory>
#include <vector>

#include "group_newton.hpp"

namespace atomlearn {

// min over w of 1/2 ||target - B w||^2 + 1/2 sum_j w_j^2 / d_j at the last d that was solved for.
class RidgeSystem {
  public:
    virtual ~RidgeSystem() = default;
    // False where the system has no factor. Scores are q = B'(target - B w), slopes w_j / d_j:
    // the same where d_j > 0 but for rounding, which the slopes do not have.
    virtual bool solve(const std::vector<double>& spread) = 0;
    // H = V'(I + B diag(d) B')^-1 V with V_g = B_g q_g over the given groups, which hold all
    // features with d > 0; both triangles, by columns.
    virtual void hessian(const Groups& groups, const std::vector<Index>& chosen,
                         std::vector<double>& out) = 0;

    std::vector<double> scores, slopes;
    double value = 0.0;     // the minimum
    double residual = 0.0;  // ||target - B w||^2
    double inner = 0.0;     // (target - B w)'target
    double squared_target = 0.0;
};

std::unique_ptr<RidgeSystem> ridge_system(const LeastSquares& loss, Index n_features);

}  // namespace atomlearn
