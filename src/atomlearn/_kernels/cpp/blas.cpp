#include "blas.hpp"

#include <cstring>
#include <vector>

#include "bindings.hpp"

namespace atomlearn::blas {
namespace {

using Potrf = void (*)(char*, int*, double*, int*, int*);
using Potrs = void (*)(char*, int*, int*, double*, int*, double*, int*, int*);
using Trsm = void (*)(char*, char*, char*, char*, int*, int*, double*, double*, int*, double*,
                      int*);
using Syrk = void (*)(char*, char*, int*, int*, double*, double*, int*, double*, double*, int*);
using Gemv = void (*)(char*, int*, int*, double*, double*, int*, double*, int*, double*, double*,
                      int*);

using Gemm = void (*)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*,
                      double*, double*, int*);

using Syev = void (*)(char*, char*, int*, double*, int*, double*, double*, int*, int*);

Potrf potrf = nullptr, potri = nullptr;
Syev syev = nullptr;
Potrs potrs = nullptr;
Trsm trsm = nullptr;
Syrk syrk = nullptr;
Gemv gemv = nullptr;
Gemm gemm = nullptr;

struct Routine {
    const char* name;
    void** target;
};

const Routine kRoutines[] = {
    {"dpotrf", reinterpret_cast<void**>(&potrf)}, {"dpotrs", reinterpret_cast<void**>(&potrs)},
    {"dtrsm", reinterpret_cast<void**>(&trsm)},   {"dsyrk", reinterpret_cast<void**>(&syrk)},
    {"dgemv", reinterpret_cast<void**>(&gemv)},   {"dgemm", reinterpret_cast<void**>(&gemm)},
    {"dsyev", reinterpret_cast<void**>(&syev)},   {"dpotri", reinterpret_cast<void**>(&potri)},
};

int narrow(Index size) {
    return static_cast<int>(size);
}
double* loose(const double* pointer) {
    return const_cast<double*>(pointer);
}

void symmetric_product(char transposed, Index size, Index inner, double alpha, const double* a,
                       Index stride, double beta, double* c, Index c_stride) {
    char lower = 'L';
    int n = narrow(size), k = narrow(inner), lda = narrow(std::max<Index>(stride, 1)),
        ldc = narrow(std::max<Index>(c_stride, 1));
    syrk(&lower, &transposed, &n, &k, &alpha, loose(a), &lda, &beta, c, &ldc);
}

// Takes a routine out of a capsule of SciPy's; false where it is not one of ours, or its C
// signature is not as expected.
bool provide(const char* name, const nb::object& capsule) {
    if (!PyCapsule_CheckExact(capsule.ptr())) return false;
    const char* signature = PyCapsule_GetName(capsule.ptr());
    // A BLAS of 64-bit integers would read other arguments.
    const bool expected = signature != nullptr &&
                          std::strncmp(signature, "void (char *, ", 14) == 0 &&
                          std::strstr(signature, ", int *, ") != nullptr;
    for (const Routine& routine : kRoutines) {
        if (!expected || std::strcmp(routine.name, name) != 0) continue;
        *routine.target = PyCapsule_GetPointer(capsule.ptr(), signature);
        return *routine.target != nullptr;
    }
    return false;
}

}  // namespace

bool cholesky(Index size, double* a, Index stride) {
    if (size == 0) return true;
    char lower = 'L';
    int n = narrow(size), lda = narrow(stride), info = 0;
    potrf(&lower, &n, a, &lda, &info);
    return info == 0;
}

void cholesky_solve(Index size, const double* l, Index stride, double* b, Index count) {
    if (size == 0) return;
    char lower = 'L';
    int n = narrow(size), m = narrow(count), lda = narrow(stride), info = 0;
    potrs(&lower, &n, &m, loose(l), &lda, b, &n, &info);
}

void cholesky_inverse(Index size, double* l, Index stride) {
    if (size == 0) return;
    char lower = 'L';
    int n = narrow(size), lda = narrow(stride), info = 0;
    potri(&lower, &n, l, &lda, &info);
}

void solve_lower(Index size, Index count, const double* l, Index stride, double* b,
                 Index b_stride) {
    if (size == 0 || count == 0) return;
    char left = 'L', lower = 'L', plain = 'N', general = 'N';
    int m = narrow(size), n = narrow(count), lda = narrow(stride), ldb = narrow(b_stride);
    double unit = 1.0;
    trsm(&left, &lower, &plain, &general, &m, &n, &unit, loose(l), &lda, b, &ldb);
}

void add_gram(Index size, Index length, double alpha, const double* a, Index stride, double beta,
              double* c, Index c_stride) {
    if (size > 0) symmetric_product('T', size, length, alpha, a, stride, beta, c, c_stride);
}

void add_outer(Index size, Index count, double alpha, const double* a, Index stride, double beta,
               double* c, Index c_stride) {
    if (size > 0) symmetric_product('N', size, count, alpha, a, stride, beta, c, c_stride);
}

void product(Index rows, Index count, Index length, const double* a, Index a_stride,
             const double* b, Index b_stride, double beta, double* c, Index c_stride) {
    if (rows == 0 || count == 0) return;
    char transposed = 'T', plain = 'N';
    int m = narrow(rows), n = narrow(count), k = narrow(length);
    int lda = narrow(std::max<Index>(a_stride, 1)), ldb = narrow(std::max<Index>(b_stride, 1));
    int ldc = narrow(c_stride);
    double unit = 1.0;
    gemm(&transposed, &plain, &m, &n, &k, &unit, loose(a), &lda, loose(b), &ldb, &beta, c, &ldc);
}

bool eigenvectors(Index size, double* a, double* values) {
    char with_vectors = 'V', lower = 'L';
    int n = narrow(size), room = 4 * n, info = 0;
    std::vector<double> work(as_size(room));
    syev(&with_vectors, &lower, &n, a, &n, values, work.data(), &room, &info);
    return info == 0;
}

void transposed_product(Index length, Index count, const double* a, Index stride, const double* x,
                        double* y) {
    if (count == 0) return;
    char transposed = 'T';
    int m = narrow(length), n = narrow(count), lda = narrow(std::max<Index>(stride, 1)), one = 1;
    double unit = 1.0, zero = 0.0;
    gemv(&transposed, &m, &n, &unit, loose(a), &lda, loose(x), &one, &zero, y, &one);
}

}  // namespace atomlearn::blas

void atomlearn::bind_blas(nb::module_& m) {
    m.def("provide_blas", &blas::provide);
}
