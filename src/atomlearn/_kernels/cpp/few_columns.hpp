// A few columns in memory, dense or compressed, and the products that Newton steps ask of them.
#pragma once

#include <memory>
#include <vector>

#include "platform.hpp"

namespace atomlearn {

// D = diag(curvature) >= 0, and B = A - Q M: `free` columns Q, one after the other, are projected
// off. M has a row of `free` numbers for each chosen column; it projects in the metric D.
struct WeightedBasis {
    const double* curvature;
    const double* basis;
    Index free;
    const double* means;
};

class FewColumns {
  public:
    virtual ~FewColumns() = default;
    // The entries of all columns, and operations of a Gram matrix of `size` of them.
    virtual double entries() const = 0;
    virtual double gram_work(double size) const = 0;
    // z_k = A'v_k, `stride` entries apart, for `count` <= 8 vectors, given by their addresses.
    virtual void scores(const double* const* v, Index count, double* z, Index stride) const = 0;
    // a_j'v.
    virtual double score(Index j, const double* v) const = 0;
    // y_k += sum_i factors[k * size + i] a_chosen[i], for `count` vectors.
    virtual void add(const std::vector<Index>& chosen, const double* factors, Index count,
                     double* const* y) const = 0;
    // The column a_j.
    virtual void copy(Index j, double* to) const = 0;
    // Whether steps over the samples are cheap: of sparse columns, sum_i d_i a_ij^2, and
    // y_i += factor d_i a_ij.
    virtual bool is_sparse() const { return false; }
    virtual double square(Index, const double* /*d*/) const { return 0.0; }
    virtual void shift(Index, double /*factor*/, const double* /*d*/, double* /*y*/) const {}
    // Tasks whose samples follow one another in each row; 1: columns have no tasks. If they have,
    // ``spread`` writes the feature of a column times the shares of its task, a number a row.
    virtual Index tasks() const { return 1; }
    // The number of a column in the matrix of features and tasks.
    virtual Index entry(Index j) const { return j; }
    virtual void spread(Index, const double* /*shares*/, double* /*to*/) const {}
    // Whether `gram` projects the free columns off; else it is that of A, and M is not read.
    virtual bool projects() const { return false; }
    // Rows and columns `known` and beyond of B'DB, row i at gram + i * stride, B the `chosen`
    // columns.
    virtual void gram(const std::vector<Index>& chosen, Index known, const WeightedBasis& weighted,
                      double* gram, Index stride) const = 0;
};

// Columns one after the other.
std::unique_ptr<FewColumns> dense_columns(const double* data, Index samples, Index count);
// Compressed columns, without duplicates. Row is std::int32_t or std::int64_t.
template <class Row>
std::unique_ptr<FewColumns> compressed_columns(const double* data, const Row* rows,
                                               const Row* starts, Index samples, Index count);

// Columns of pairs of a feature and a task: feature places[j], `rows` numbers, at the samples of
// task tasks[j], the others of `count` tasks between them.
struct TaskPairs {
    const double* features;
    Index n_features;
    Index rows;
    const Index* places;
    const Index* tasks;
    Index n_tasks;
    Index count;
};
std::unique_ptr<FewColumns> task_columns(const TaskPairs& pairs);

}  // namespace atomlearn
