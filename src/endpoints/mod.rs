//! The HTTP face of the profiler.
