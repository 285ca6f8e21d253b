#include "sample_losses.hpp"

#include <cmath>

namespace atomlearn {
namespace {

// Each has value(y, z) and derivatives(y, z, first, second).
struct Squared {
    static double value(double y, double z) { return 0.5 * (z - y) * (z - y); }
    static void derivatives(double y, double z, double& first, double& second) {
        first = z - y;
        second = 1.0;
    }
};

struct Logistic {
    static double value(double y, double z) {
        const double margin = y * z;
        return std::log1p(std::exp(-std::fabs(margin))) + std::max(-margin, 0.0);
    }
    static void derivatives(double y, double z, double& first, double& second) {
        const double small = std::exp(-std::fabs(z));
        const double share = 1.0 / (1.0 + small);
        first = -y * (y * z > 0.0 ? small * share : share);
        second = small * share * share;
    }
};

struct SquaredHinge {
    static double value(double y, double z) {
        const double short_of = std::max(1.0 - y * z, 0.0);
        return 0.5 * short_of * short_of;
    }
    static void derivatives(double y, double z, double& first, double& second) {
        const double short_of = std::max(1.0 - y * z, 0.0);
        first = -y * short_of;
        second = short_of > 0.0 ? 1.0 : 0.0;
    }
};

struct Poisson {
    static double value(double y, double z) {
        return std::exp(z) - y * z + (y > 0.0 ? y * std::log(y) - y : 0.0);
    }
    static void derivatives(double y, double z, double& first, double& second) {
        second = std::exp(z);
        first = second - y;
    }
};

struct Huber {
    double delta;
    double value(double y, double z) const {
        const double size = std::fabs(z - y), inner = std::min(size, delta);
        return inner * (size - 0.5 * inner);
    }
    void derivatives(double y, double z, double& first, double& second) const {
        first = std::clamp(z - y, -delta, delta);
        second = std::fabs(z - y) <= delta ? 1.0 : 0.0;
    }
};

template <class F>
void with_loss(const Samples& samples, F&& f) {
    switch (samples.loss) {
        case SampleLoss::squared:
            return f(Squared{});
        case SampleLoss::logistic:
            return f(Logistic{});
        case SampleLoss::squared_hinge:
            return f(SquaredHinge{});
        case SampleLoss::poisson:
            return f(Poisson{});
        case SampleLoss::huber:
            return f(Huber{samples.shape});
    }
}

}  // namespace

double Samples::value(const double* z) const {
    double total = 0.0;
    with_loss(*this, [&](const auto& of) {
        for (Index i = 0; i < count; ++i) total += weight[i] * of.value(target[i], z[i]);
    });
    return total;
}

void Samples::differentiate(const double* z, double* first, double* second) const {
    with_loss(*this, [&](const auto& of) {
        for (Index i = 0; i < count; ++i) {
            of.derivatives(target[i], z[i], first[i], second[i]);
            first[i] *= weight[i];
            second[i] *= weight[i];
        }
    });
}

void Samples::bound(const double* z, const double* second, double* upper) const {
    double most = loss == SampleLoss::logistic ? 0.25 : 1.0;
    if (loss == SampleLoss::poisson) {
        most = 0.0;
        for (Index i = 0; i < count; ++i)
            if (weight[i] > 0.0) most = std::max(most, second[i] / weight[i]);
    }
    for (Index i = 0; i < count; ++i) {
        const double far = loss == SampleLoss::huber ? std::fabs(z[i] - target[i]) / shape : 1.0;
        upper[i] = weight[i] * most / std::max(far, 1.0);
    }
}

}  // namespace atomlearn
