// max(||w||_2, ||w||_1 / sqrt k): its value and its proximal point.
#pragma once

#include <vector>

#include "platform.hpp"

namespace atomlearn {

// share: of the subgradient that is the l1 norm's; 0, 1, or between where the norms are equal.
struct ElasticPoint {
    double gauge;
    double share;
};

double elastic_gauge(const std::vector<double>& w, double k);
// Overwrites v with the proximal point of amount g, or of amount / 2 g^2 where squared.
ElasticPoint elastic_point(std::vector<double>& v, double k, double amount, bool squared);

}  // namespace atomlearn
