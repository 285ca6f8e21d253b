// A few columns in memory, dense or compressed, and the products that Newton steps ask of them.
#pragma once

#include <memory>
#include <vector>

#include "platform.hpp"

namespace atomlearn {

class FewColumns {
  public:
    virtual ~FewColumns() = default;
    // z = A'v.
    virtual void scores(const double* v, double* z) const = 0;
    // a_j'v.
    virtual double score(Index j, const double* v) const = 0;
    // y += factor a_j.
    virtual void add(Index j, double factor, double* y) const = 0;
    // Rows and columns `known` and beyond of B'DB, row i at gram + i * stride, B the `chosen`
    // columns less the means (null: none), D = diag(curvature) >= 0.
    virtual void gram(const std::vector<Index>& chosen, Index known, const double* curvature,
                      const double* means, double* gram, Index stride) const = 0;
};

// Columns one after the other.
std::unique_ptr<FewColumns> dense_columns(const double* data, Index samples, Index count);
// Compressed columns, without duplicates. Row is std::int32_t or std::int64_t.
template <class Row>
std::unique_ptr<FewColumns> compressed_columns(const double* data, const Row* rows,
                                               const Row* starts, Index samples, Index count);

}  // namespace atomlearn
