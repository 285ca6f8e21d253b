// OpenMP for the thread sanitizer: what GCC's code calls, of threads and locks that it understands.
//
// GCC's own libgomp is not instrumented and waits on futexes: the sanitizer sees no order between a
// region and what comes after it, and reports every one. Preloaded, this takes its place in
// `sanitize.sh thread`: each region starts its threads afresh and joins them, so that what is
// reported then is a race of the kernels. It is slow, and for nothing else.
#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace {

struct Loop {
    long next, end, step, chunk;
};

struct Team {
    explicit Team(int count) : size(count) {}
    int size;
    std::mutex lock;
    std::condition_variable all_here;
    int waiting = 0, generation = 0;
    std::map<int, Loop> loops;  // by their number within the region

    void barrier() {
        std::unique_lock<std::mutex> held(lock);
        const int mine = generation;
        if (++waiting == size) {
            waiting = 0;
            ++generation;
            all_here.notify_all();
        } else {
            all_here.wait(held, [&] { return generation != mine; });
        }
    }
};

thread_local Team* team = nullptr;
thread_local int number = 0, loop = 0;

int threads_asked() {
    const char* asked = std::getenv("OMP_NUM_THREADS");
    return asked ? std::max(1, std::atoi(asked)) : 2;
}

thread_local int most = threads_asked();

bool take(long* begin, long* end) {
    std::lock_guard<std::mutex> held(team->lock);
    Loop& here = team->loops[loop];
    const bool up = here.step > 0;
    if (up ? here.next >= here.end : here.next <= here.end) return false;
    const long last = here.next + here.step * here.chunk;
    *begin = here.next;
    *end = here.next = up ? std::min(last, here.end) : std::max(last, here.end);
    return true;
}

}  // namespace

extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned) {
    Team* outer = team;
    const int outer_number = number, outer_loop = loop;
    Team own(outer ? 1 : threads ? static_cast<int>(threads) : most);
    auto work = [&](int mine) {
        team = &own;
        number = mine;
        loop = 0;
        body(data);
    };
    std::vector<std::thread> others;
    for (int k = 1; k < own.size; ++k) others.emplace_back(work, k);
    work(0);
    for (auto& other : others) other.join();
    team = outer;
    number = outer_number;
    loop = outer_loop;
}

bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk, long* from,
                                          long* to) {
    ++loop;
    {
        std::lock_guard<std::mutex> held(team->lock);
        team->loops.try_emplace(loop, Loop{start, end, step, chunk});
    }
    return take(from, to);
}

bool GOMP_loop_nonmonotonic_dynamic_next(long* from, long* to) {
    return take(from, to);
}
void GOMP_loop_end() {
    team->barrier();
}
void GOMP_loop_end_nowait() {}
void GOMP_barrier() {
    team->barrier();
}
int omp_get_max_threads() {
    return most;
}
int omp_get_num_threads() {
    return team ? team->size : 1;
}
int omp_get_thread_num() {
    return team ? number : 0;
}
int omp_in_parallel() {
    return team && team->size > 1;
}
void omp_set_num_threads(int threads) {
    most = threads;
}
}
