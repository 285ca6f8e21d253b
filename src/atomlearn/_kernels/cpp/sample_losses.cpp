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
    ClippedSlopes of;
    double inverse = 1.0 / of.width;
    double value(double y, double z) const {
        const double slope = std::clamp((z - y) * inverse, of.low, of.high);
        return slope * (z - y - 0.5 * of.width * slope);
    }
    void derivatives(double y, double z, double& first, double& second) const {
        const double free = (z - y) * inverse;
        first = std::clamp(free, of.low, of.high);
        second = first == free ? inverse : 0.0;
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
            return f(Huber{samples.slopes});
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

double Samples::slack(const double* z, const double* first, const double* second,
                      double share) const {
    double total = 0.0;
    const double rest = 0.5 * (1.0 - share) * (1.0 - share);
    for (Index i = 0; i < count; ++i) {
        if (second[i] > 0.0)
            total += rest * first[i] * first[i] / second[i];
        else if (loss == SampleLoss::huber && weight[i] > 0.0)
            total += (1.0 - share) * first[i] *
                     (z[i] - target[i] - 0.5 * slopes.width * (1.0 + share) * first[i] / weight[i]);
    }
    return total;
}

void Samples::bound(const double* z, const double* second, double* upper) const {
    double most = loss == SampleLoss::logistic ? 0.25 : 1.0;
    if (loss == SampleLoss::poisson) {
        most = 0.0;
        for (Index i = 0; i < count; ++i)
            if (weight[i] > 0.0) most = std::max(most, second[i] / weight[i]);
    }
    std::fill_n(upper, count, most);
    if (loss == SampleLoss::huber) {
        const double middle = 0.5 * slopes.width * (slopes.low + slopes.high);
        const double half = 0.5 * (slopes.high - slopes.low);
        for (Index i = 0; i < count; ++i) {
            const double far = std::fabs(z[i] - target[i] - middle);
            upper[i] = half / std::max(far, half * slopes.width);
        }
    }
    for (Index i = 0; i < count; ++i) upper[i] *= weight[i];
}

}  // namespace atomlearn
