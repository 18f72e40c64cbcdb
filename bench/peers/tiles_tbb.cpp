/* Task-graph overhead of oneTBB: the same 1-D stencil of empty tiles as tiles_omp.c.
 *
 * A task a tile: a flow graph of continue nodes (of some steps, built before the clock starts and
 * run again and again); a task_group with dependency counters of our own, where the last finished
 * dependence spawns the tile; a task_group a step; a parallel_for a step with grain 1. Also shown,
 * but no task graph (kind "loop"): a parallel_for a step that the library cuts as it likes. And
 * (kind "hand"): our own counters where a tile simply calls the next that it has made ready, so
 * that the library sees a task only when there are two.
 *
 * usage: tiles_tbb THREADS WIDTH TILES [WIDTH TILES ...] */
#include "../measure.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <tbb/blocked_range.h>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <tbb/task_scheduler_observer.h>
#include <vector>

namespace
{

enum { LINE = 16, FLOW_STEPS = 64 };

std::vector<long> count;
std::atomic<long> wrong;

inline void tile(long step, long i, long width, bool check)
{
    if (check) {
        long left = i > 0 ? count[(i - 1) * LINE] : step;
        long right = i < width - 1 ? count[(i + 1) * LINE] : step;
        if (count[i * LINE] != step || left < step || right < step) {
            wrong++;
        }
    }
    count[i * LINE] = step + 1;
}

/* Every worker on its own core, as the other programs place theirs. */
class placement : public tbb::task_scheduler_observer
{
  public:
    explicit placement(tbb::task_arena &arena) : tbb::task_scheduler_observer(arena)
    {
        observe(true);
    }
    void on_scheduler_entry(bool) override
    {
        bench_pin(tbb::this_task_arena::current_thread_index());
    }
};

/* A graph of at most FLOW_STEPS steps, run as often as it takes. */
class flow
{
  public:
    flow(long width, long steps, bool check) : width_(width), steps_(steps), check_(check)
    {
        long rows = std::min(steps, (long)FLOW_STEPS);
        for (long t = 0; t < rows; t++) {
            for (long i = 0; i < width; i++) {
                nodes_.push_back(
                    std::make_unique<node>(graph_, [this, t, i](const tbb::flow::continue_msg &) {
                        if (base_ + t < steps_) {
                            tile(base_ + t, i, width_, check_);
                        }
                    }));
            }
        }
        for (long t = 1; t < rows; t++) {
            for (long i = 0; i < width; i++) {
                for (long k = i > 0 ? i - 1 : 0; k <= i + 1 && k < width; k++) {
                    tbb::flow::make_edge(*nodes_[(t - 1) * width + k], *nodes_[t * width + i]);
                }
            }
        }
    }
    void run()
    {
        for (base_ = 0; base_ < steps_; base_ += FLOW_STEPS) {
            for (long i = 0; i < width_; i++) {
                nodes_[i]->try_put(tbb::flow::continue_msg());
            }
            graph_.wait_for_all();
        }
    }

  private:
    using node = tbb::flow::continue_node<tbb::flow::continue_msg>;
    long width_, steps_, base_ = 0;
    bool check_;
    tbb::flow::graph graph_;
    std::vector<std::unique_ptr<node>> nodes_;
};

/* Tile (t, i) is spawned by the last of those it waits for; two rows of counters are enough, as a
 * column is never more than one step ahead of its neighbours. */
template <bool Chained> class counters
{
  public:
    counters(long width, long steps, bool check)
        : width_(width), steps_(steps), check_(check), left_(2 * width * LINE)
    {
    }
    void run()
    {
        for (long i = 0; i < width_; i++) {
            left_[i * LINE].store(0, std::memory_order_relaxed);
            left_[(width_ + i) * LINE].store(needs(i), std::memory_order_relaxed);
        }
        for (long i = 0; i < width_; i++) {
            group_.run([this, i] { step(0, i); });
        }
        group_.wait();
    }

  private:
    long needs(long i) const
    {
        return 1 + (i > 0) + (i < width_ - 1);
    }
    void step(long t, long i)
    {
        for (;;) {
            tile(t, i, width_, check_);
            left_[(t % 2 * width_ + i) * LINE].store(needs(i), std::memory_order_relaxed);
            if (++t == steps_) {
                return;
            }
            long next = -1;
            for (long k = i > 0 ? i - 1 : 0; k <= i + 1 && k < width_; k++) {
                std::atomic<long> &left = left_[(t % 2 * width_ + k) * LINE];
                if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
                    if (!Chained || next >= 0) {
                        long ready = Chained ? next : k;
                        group_.run([this, t, ready] { step(t, ready); });
                    }
                    next = Chained ? k : -1;
                }
            }
            if (next < 0) {
                return;
            }
            i = next;
        }
    }
    long width_, steps_;
    bool check_;
    std::vector<std::atomic<long>> left_;
    tbb::task_group group_;
};

/* A task a tile and a wait a step. */
struct groups {
    long width, steps;
    bool check;
    void run()
    {
        tbb::task_group group;
        for (long t = 0; t < steps; t++) {
            for (long i = 1; i < width; i++) {
                group.run([this, t, i] { tile(t, i, width, check); });
            }
            tile_and_wait(group, t);
        }
    }
    void tile_and_wait(tbb::task_group &group, long t)
    {
        group.run_and_wait([this, t] { tile(t, 0, width, check); });
    }
};

template <typename Partitioner> struct loops {
    long width, steps;
    bool check;
    void run()
    {
        Partitioner partitioner;
        for (long t = 0; t < steps; t++) {
            tbb::parallel_for(
                tbb::blocked_range<long>(0, width, 1),
                [this, t](const tbb::blocked_range<long> &range) {
                    for (long i = range.begin(); i < range.end(); i++) {
                        tile(t, i, width, check);
                    }
                },
                partitioner);
        }
    }
};

template <typename Way> double run_way(long width, long steps, bool check)
{
    count.assign(width * LINE, 0);
    Way way{width, steps, check};
    double start = bench_now_ns();
    way.run();
    return (bench_now_ns() - start) / (double)(width * steps);
}

struct tiles_way {
    const char *name;
    const char *kind;
    double (*run)(long width, long steps, bool check);
};

const tiles_way ways[] = {
    {"flow-graph", "peer", run_way<flow>},
    {"task-group-counters", "peer", run_way<counters<false>>},
    {"task-group", "peer", run_way<groups>},
    {"parallel-for-simple", "peer", run_way<loops<tbb::simple_partitioner>>},
    {"parallel-for-auto", "loop", run_way<loops<tbb::auto_partitioner>>},
    {"parallel-for-static", "loop", run_way<loops<tbb::static_partitioner>>},
    {"parallel-for-affinity", "loop", run_way<loops<tbb::affinity_partitioner>>},
    {"chained-counters", "hand", run_way<counters<true>>},
};

bool complete(long width, long steps)
{
    for (long i = 0; i < width; i++) {
        if (count[i * LINE] != steps) {
            return false;
        }
    }
    return wrong == 0;
}

void run_case(int threads, long width, long tiles)
{
    long steps = tiles / width;
    int batches = tiles > 100000 ? 1 : BENCH_BATCHES;
    std::string test = "w" + std::to_string(width) + "/" + std::to_string(tiles) + "/" +
                       std::to_string(threads) + "t";
    std::vector<bench_result> result;
    for (const tiles_way &way : ways) {
        long some = steps > 1000 ? 1000 : steps;
        wrong = 0;
        way.run(width, some, true);
        result.push_back({"tiles",
                          test.c_str(),
                          "tbb",
                          way.name,
                          way.kind,
                          batches,
                          {},
                          complete(width, some),
                          0});
    }
    for (int batch = 0; batch < batches; batch++) {
        for (size_t w = 0; w < result.size(); w++) {
            result[w].ns[batch] = ways[w].run(width, steps, false);
            result[w].verified = result[w].verified && complete(width, steps);
        }
    }
    for (const bench_result &r : result) {
        bench_print(&r);
    }
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 4 || argc % 2 == 1) {
        fprintf(stderr, "usage: %s THREADS WIDTH TILES [WIDTH TILES ...]\n", argv[0]);
        return 2;
    }
    int threads = atoi(argv[1]);
    bench_pin(0);
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, threads);
    tbb::task_arena arena(threads);
    placement place(arena);
    arena.execute([&] {
        for (int i = 2; i < argc; i += 2) {
            run_case(threads, atol(argv[i]), atol(argv[i + 1]));
        }
    });
    place.observe(false);
    return 0;
}
