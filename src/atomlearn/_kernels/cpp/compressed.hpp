// Compressed vectors, and how threads share them.
#pragma once

#include <vector>

#include "bindings.hpp"

namespace atomlearn {

// Compressed vectors: CSR rows or CSC columns.
template <class T, class I>
struct Compressed {
    const T* data;
    const I* indices;
    const I* indptr;
    Index count;
    Index length;
    const Index* major_subset;
    Index at(Index major) const { return major_subset ? major_subset[major] : major; }
    Index begin(Index major) const { return static_cast<Index>(indptr[at(major)]); }
    Index end(Index major) const { return static_cast<Index>(indptr[at(major) + 1]); }
};

// Raises unless these are pointers into so many entries, of the type of the indices.
template <class I>
void expect_pointers(const Vector& indptr, Index n_entries) {
    expect(indptr.dtype() == nb::dtype<I>(), "indices and indptr must have one type");
    expect(size_of(indptr) > 0, "indptr must have at least one entry");
    expect(static_cast<const I*>(indptr.data())[size_of(indptr) - 1] <= n_entries,
           "indptr announces more entries than there are");
}

// Calls f with the vectors of a CSR or CSC array, all or those at the positions `subset`.
template <class F>
auto by_compressed(const Vector& data, const Vector& indices, const Vector& indptr, Index length,
                   const std::optional<Positions>& subset, F&& f) {
    return by_float(data, [&]<class T>(const T* values) {
        return by_index(indices, [&]<class I>(const I* positions) {
            expect_pointers<I>(indptr, size_of(data));
            expect(size_of(data) == size_of(indices), "data and indices must be of one size");
            if (subset) expect_within(*subset, size_of(indptr) - 1);
            const Index count = subset ? size_of(*subset) : size_of(indptr) - 1;
            return f(Compressed<T, I>{values, positions, static_cast<const I*>(indptr.data()),
                                      count, length, data_of(subset)});
        });
    });
}

// Cuts the vectors where stored entries, counted from `indptr`, are even.
template <class I>
std::vector<Index> even_cuts(const I* indptr, Index count, Index parts) {
    std::vector<Index> cuts(as_size(parts + 1), count);
    cuts[0] = 0;
    for (Index part = 1; part < parts; ++part) {
        const I target = static_cast<I>(static_cast<Index>(indptr[count]) / parts * part);
        cuts[part] = std::max<Index>(cuts[part - 1],
                                     std::lower_bound(indptr, indptr + count, target) - indptr);
    }
    return cuts;
}

// Calls body(range) for all vectors, each stored entry of `width` operations.
template <class I, class Body>
void by_entries(const I* indptr, Index count, Index width, Body&& body) {
    const int threads = threads_for(static_cast<Index>(indptr[count]) * width + count);
    if (threads == 1) return body(Range{0, count});
    const Index parts = 8 * threads;
    const std::vector<Index> cuts = even_cuts(indptr, count, parts);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (Index part = 0; part < parts; ++part) body(Range{cuts[part], cuts[part + 1]});
}

}  // namespace atomlearn
