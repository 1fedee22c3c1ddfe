//! Nothing is shared among the benchmarks yet.
